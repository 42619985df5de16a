// An MCP server that cinch starts as a child: tools, status, off and on, a broken one beside it.
import { fileURLToPath } from 'node:url';
import { assert, call, model, said, talk, text } from '../host.mjs';

const file = fileURLToPath(new URL('../servers/notes.mjs', import.meta.url));
await model.answers(call('a', 'mcp__notes__add', { note: 'buy milk' }), text('Noted.'), call('b', 'mcp__notes__add', { note: 'more' }), text('Off.'), call('c', 'mcp__notes__add', { note: 'again' }), text('On.'));
const run = talk({
  allowedTools: ['mcp__notes'],
  mcpServers: {
    notes: { type: 'stdio', command: process.execPath, args: [file], env: { OWNER: 'Ada' }, alwaysLoad: true },
    broken: { type: 'stdio', command: '/nonexistent/server' },
  },
});
await run.turn('Note it.');
assert.match(said([run.toolResult('a')]), /1 notes for Ada/);
const status = Object.fromEntries((await run.q.mcpServerStatus()).map(s => [s.name, s]));
assert.equal(status.notes.status, 'connected');
assert.equal(status.notes.serverInfo.version, '0.4.0');
assert.deepEqual(status.notes.tools.map(t => t.name).sort(), ['add', 'die']);
assert.equal(status.broken.status, 'failed');
assert.ok(status.broken.error, 'a failed server says why');

await run.q.toggleMcpServer('notes', false);
assert.equal((await run.q.mcpServerStatus()).find(s => s.name === 'notes').status, 'disabled');
await run.turn('Note more.');
assert.equal(run.toolResult('b').is_error, true);
await run.q.toggleMcpServer('notes', true);
await run.q.reconnectMcpServer('notes');
await run.turn('Note again.');
assert.match(said([run.toolResult('c')]), /1 notes for Ada/, 'a new server knows nothing of the old');
await assert.rejects(run.q.reconnectMcpServer('broken'));
await assert.rejects(run.q.reconnectMcpServer('unheard-of'));
await run.close();
