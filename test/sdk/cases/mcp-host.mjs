// MCP servers inside the program that drives cinch.
import { createSdkMcpServer, tool } from '@anthropic-ai/claude-agent-sdk';
import { z } from 'zod';
import { assert, call, fine, model, results, said, talk, text } from '../host.mjs';

const made = [];
const server = () => createSdkMcpServer({
  name: 'shop', version: '2.0.0',
  tools: [
    tool('price', 'What something costs', { item: z.string() }, async ({ item }) => { made.push(item); return { content: [{ type: 'text', text: `${item}: 3 coins` }] }; }, { annotations: { readOnlyHint: true } }),
    tool('order', 'Order something', { item: z.string(), count: z.number().int() }, async () => { throw new Error('the shop is closed'); }),
    tool('picture', 'A picture', {}, async () => ({ content: [{ type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==' }] })),
  ],
});
await model.answers(
  [call('p', 'mcp__shop__price', { item: 'lamp' }), call('q', 'mcp__shop__price', { item: 'rope' })],
  call('o', 'mcp__shop__order', { item: 'lamp', count: 1 }),
  call('v', 'mcp__shop__order', { item: 'lamp', count: 'many' }),
  call('i', 'mcp__shop__picture'),
  text('Bought nothing.'),
);
const run = await fine('Shop.', { mcpServers: { shop: server() }, allowedTools: ['mcp__shop__price', 'mcp__shop__order', 'mcp__shop__picture'] });
assert.deepEqual(run.init.mcp_servers.find(s => s.name === 'shop').status, 'connected');
for (const name of ['price', 'order', 'picture']) assert.ok(run.init.tools.includes('mcp__shop__' + name), name);
assert.deepEqual(made.sort(), ['lamp', 'rope']);
assert.match(said([run.toolResult('p')]), /lamp: 3 coins/);
assert.match(said([run.toolResult('q')]), /rope: 3 coins/);
assert.equal(run.toolResult('o').is_error, true);
assert.match(said([run.toolResult('o')]), /the shop is closed/);
assert.equal(run.toolResult('v').is_error, true, 'a wrong input is refused');
const image = results((await model.requests())[4]).i.content.find(b => b.type === 'image');
assert.equal(image.source.media_type, 'image/png');

// Without a rule the tool needs a person; a denied one is not called.
made.length = 0;
await model.answers(call('n', 'mcp__shop__price', { item: 'oar' }), text('No.'));
const asked = [];
await fine('Shop.', { mcpServers: { shop: server() }, canUseTool: async name => { asked.push(name); return { behavior: 'deny', message: 'too dear' }; } });
assert.deepEqual([asked, made], [['mcp__shop__price'], []]);

// Servers come and go in a session.
await model.answers(text('Nothing there.'), call('late', 'mcp__shop__price', { item: 'bell' }), text('There now.'));
const t = talk({ allowedTools: ['mcp__shop'] });
await t.turn('Hello.');
const set = await t.q.setMcpServers({ shop: server() });
assert.deepEqual(set.added, ['shop']);
await t.turn('Price?');
assert.match(said([t.toolResult('late')]), /bell: 3 coins/);
const gone = await t.q.setMcpServers({});
assert.deepEqual(gone.removed, ['shop']);
await t.close();
