// Partial messages: the events of the model's stream, each block's frame behind its events.
import { assert, call, fine, model, text, write } from '../host.mjs';

const words = 'The quick brown fox jumps over the lazy dog.';
write('seen.txt', 'seen\n');
await model.answers(['piece 9', text(words), call('t1', 'Glob', { pattern: '*.txt' })], text('One file.'));
const run = await fine('Look.', { includePartialMessages: true, allowedTools: ['Glob'] });

const events = run.of('stream_event').filter(m => m.event.type !== 'ping');
assert.deepEqual(events.filter(m => m.event.type === 'message_start').length, 2);
const first = events.slice(0, events.findIndex(m => m.event.type === 'message_stop') + 1).map(m => m.event);
assert.deepEqual(first.filter(e => e.type !== 'content_block_delta').map(e => e.type), [
  'message_start', 'content_block_start', 'content_block_stop', 'content_block_start', 'content_block_stop', 'message_delta', 'message_stop',
]);
const deltas = first.filter(e => e.type === 'content_block_delta');
assert.ok(deltas.filter(e => e.delta.type === 'text_delta').length > 2, 'the text comes in pieces');
assert.equal(deltas.map(e => e.delta.text ?? '').join(''), words);
assert.deepEqual(JSON.parse(deltas.map(e => e.delta.partial_json ?? '').join('')), { pattern: '*.txt' });
assert.equal(first.find(e => e.type === 'message_delta').delta.stop_reason, 'tool_use');
for (const m of events) assert.ok(m.uuid && m.session_id === run.init.session_id && m.parent_tool_use_id === null);

const last = run.messages.findLastIndex(m => m.type === 'stream_event' && m.event.delta?.text);
const frame = run.messages.findIndex(m => m.type === 'assistant');
const lastOfFirst = run.messages.findIndex(m => m.type === 'stream_event' && m.event.type === 'content_block_stop');
assert.ok(frame > 0 && last > frame && lastOfFirst > 0);
assert.ok(run.messages.slice(0, frame).filter(m => m.event?.delta?.text).map(m => m.event.delta.text).join('') === words, 'the frame comes behind its events');

await model.answers(text('Whole.'));
assert.equal((await fine('Again.')).of('stream_event').length, 0, 'none without the option');
