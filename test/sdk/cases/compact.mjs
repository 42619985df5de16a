// Compaction, by command and by itself.
import { assert, call, model, sent, talk, text } from '../host.mjs';

await model.answers(text('Noted: seven.'), text('Noted: blue.'), '' + text('<summary>The number is seven, the colour blue.</summary>'), text('Seven and blue.'));
const run = talk();
await run.turn('The number is seven.');
await run.turn('The colour is blue.');
run.send('/compact mind the colour');
const border = await run.next(m => m.type === 'system' && m.subtype === 'compact_boundary');
assert.equal(border.compact_metadata.trigger, 'manual');
assert.ok(border.compact_metadata.pre_tokens > 0);
await run.next(m => m.type === 'result');
const summing = (await model.requests())[2];
assert.ok(sent(summing).includes('mind the colour'));
const after = await run.turn('What do you know?');
await run.close();
assert.equal(after.result, 'Seven and blue.');
const last = sent((await model.requests()).at(-1));
assert.ok(last.includes('The number is seven, the colour blue.') && last.includes('What do you know?'));
assert.ok(!last.includes('Noted: seven.') && !last.includes('The number is seven.'), 'the old messages are gone: ' + last);
assert.ok(run.of('system', 'status').some(m => m.status === 'compacting'));

// Near the end of the window it happens unasked.
const n = await model.count();
await model.answers(
  ['usage in=190000 out=10', call('ls', 'Bash', { command: 'echo far' })],
  ['when last summar', text('<summary>Much was said.</summary>')],
  ['repeat', text('On we go.')],
);
const t = talk({ allowedTools: ['Bash'] });
await t.turn('Begin a long talk.');
await t.turn('Go on.');
await t.close();
assert.ok(t.of('system', 'compact_boundary').some(m => m.compact_metadata.trigger === 'auto'), t.kinds.join(' '));
assert.ok((await model.requests()).slice(n).some(r => sent(r).includes('Much was said.')));
