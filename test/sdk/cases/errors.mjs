// What the API refuses and how the stream may break, and what a host hears of it.
import { ask, assert, at, call, exists, fine, model, read, said, sent, text } from '../host.mjs';

const env = { CLAUDE_CODE_MAX_RETRIES: '2' };
// What passes is tried again, and the host is told.
await model.answers('status 529 0 overloaded_error "too much"', 'status 500 0 api_error "broken"', text('Third time.'));
const run = await fine('Hi.', { env });
assert.equal(run.result.result, 'Third time.');
const told = run.of('system', 'api_retry');
assert.deepEqual(told.map(m => [m.attempt, m.max_retries, m.error_status]), [[1, 2, 529], [2, 2, 500]]);

// What does not pass ends the turn after as many tries as were allowed, and says why.
let before = await model.count();
await model.answers('repeat\nstatus 500 0 api_error "still broken"');
const dead = await ask('Hi.', { env });
assert.equal(dead.result.is_error, true);
assert.equal(dead.result.api_error_status, 500);
assert.equal(dead.result.terminal_reason, 'api_error');
assert.equal(await model.count(), before + 3);
assert.match(dead.result.result, /still broken|500/);

// What another try would not mend is not tried again. A 400 that names nothing gets one more, without
// what gateways may not know.
for (const [status, type, tries] of [[401, 'authentication_error', 1], [403, 'permission_error', 1], [400, 'invalid_request_error', 2]]) {
  before = await model.count();
  await model.answers(`repeat\nstatus ${status} "" ${type} "no"`);
  const r = await ask('Hi.', { env });
  assert.equal(r.result.is_error, true);
  assert.equal(r.result.api_error_status, status);
  assert.equal(await model.count(), before + tries, `${status} ${tries} times`);
}

// A stream that breaks: in text, in the input of a call, behind a call.
const write = name => call(name, 'Write', { file_path: at(name), content: name });
await model.answers([text('Half of'), 'open ' + text(' a sen'), 'cut'], text('tence, and done.'));
assert.match((await fine('Hi.', { env })).result.result, /done\./);

await model.answers([text('Now.'), 'open ' + write('half'), 'cut'], write('whole'), text('Written.'));
await fine('Write.', { env, allowedTools: ['Write'] });
assert.deepEqual([exists('half'), exists('whole')], [false, true], 'half a call never runs');

await model.answers([call('b1', 'Bash', { command: 'echo x >> times' }), 'cut'], text('Once.'));
await fine('Append.', { env, allowedTools: ['Bash'] });
assert.equal(read('times'), 'x\n', 'a whole call runs once');

await model.answers([text('A'), 'error overloaded_error "too much"'], text('Whole again.'));
assert.match((await fine('Hi.', { env })).result.result, /Whole again\./);

// The faults of tools are for the model.
await model.answers(
  [call('u', 'NoSuchTool', {}), call('v', 'Read', { file_path: at('nowhere') }), call('w', 'Read', { wrong: 1 }), 'rawtool x Read "{\\"file_path\\": "'],
  text('I see.'),
);
const tools = await fine('Err.', { env });
for (const id of ['u', 'v', 'w', 'x']) assert.equal(tools.toolResult(id).is_error, true, id);
assert.match(said([tools.toolResult('u')]), /NoSuchTool/);
