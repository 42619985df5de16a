// Thinking: on and off, shown to the host, sent back as it came.
import { assert, call, fine, model, talk, text } from '../host.mjs';

await model.answers(['thinking "First the left one."', 'redacted', text('Left.'), call('t1', 'Bash', { command: 'echo left' })], ['thinking "Then the right one."', call('t2', 'Bash', { command: 'echo right' })], text('Both.'), text('More.'));
const run = talk({ allowedTools: ['Bash'], thinking: { type: 'enabled', budgetTokens: 3000 }, includePartialMessages: true });
await run.turn('Think.');
await run.turn('More.');
await run.close();
const requests = await model.requests();
const sent = requests[1].body.messages.filter(m => m.role === 'assistant');
assert.deepEqual(sent[0].content.map(b => b.type), ['thinking', 'redacted_thinking', 'text', 'tool_use']);
assert.equal(sent[0].content[0].thinking, 'First the left one.');
assert.ok(sent[0].content[0].signature && sent[0].content[1].data);
assert.deepEqual(requests[2].body.messages.filter(m => m.role === 'assistant')[1].content.map(b => b.type), ['thinking', 'tool_use']);
assert.deepEqual(run.blocks.filter(b => b.type === 'thinking').map(b => b.thinking), ['First the left one.', 'Then the right one.']);
const deltas = new Set(run.of('stream_event').map(m => m.event.delta?.type));
assert.ok(deltas.has('thinking_delta') && deltas.has('signature_delta'));
const { thinking, max_tokens } = requests[0].body;
assert.ok(thinking.type === 'enabled' && thinking.budget_tokens === 3000 && max_tokens > 3000, JSON.stringify(thinking));

await model.answers(text('No.'));
await fine('Hi.', { thinking: { type: 'disabled' } });
assert.equal((await model.requests()).at(-1).body.thinking?.type ?? 'disabled', 'disabled');
