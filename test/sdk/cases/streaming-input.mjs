// Streaming input: several prompts of one session, and prompts that come while it works.
import { assert, call, model, said, sent, talk, text, until, exists } from '../host.mjs';

await model.answers(text('First.'), text('Second.'), text('Third.'));
const run = talk({ allowedTools: ['Bash'] });
const one = await run.turn('apple');
const two = await run.turn([{ type: 'text', text: 'pear' }, { type: 'text', text: 'plum' }]);
assert.deepEqual([one.result, two.result], ['First.', 'Second.']);
assert.equal(one.session_id, two.session_id);
assert.ok(two.total_cost_usd > one.total_cost_usd, 'the cost is the session\'s');
// Two prompts at once are two turns.
run.send('cherry');
await run.next(m => m.type === 'result');
let [, , third] = await model.requests();
assert.deepEqual(third.body.messages.map(m => m.role), ['user', 'assistant', 'user', 'assistant', 'user']);
for (const fruit of ['apple', 'pear', 'plum', 'cherry']) assert.ok(sent(third).includes(fruit), fruit);
assert.ok(third.usage.Read > 0, 'the prefix is read from the cache');

// What comes while a tool runs goes to the model with its result, in the same turn.
await model.answers(call('slow', 'Bash', { command: 'touch started; while [ ! -e go ]; do sleep 0.05; done; echo over' }), text('Both seen.'));
run.send('begin');
await until(() => exists('started'), 'the tool');
run.send('and mind the elephant', { uuid: '3d6f7a10-90be-4f2e-8a53-0c6ff6f0a001' });
await until(async () => (await import('node:fs')).existsSync(process.env.PROJECT + '/started'), 'the file');
await new Promise(done => setTimeout(done, 300));
(await import('node:fs')).writeFileSync(process.env.PROJECT + '/go', '');
const joined = await run.next(m => m.type === 'result');
assert.equal(joined.result, 'Both seen.');
const last = (await model.requests()).at(-1);
assert.match(said(last.body.messages.at(-1).content), /over[\s\S]*elephant/);
await run.close();
assert.equal(run.error, undefined);
assert.equal(run.of('result').length, 4);
assert.equal(run.of('system', 'init').length, 4, 'one init a turn');
