// The end of the process: abort, close, interrupt, the end of the input; and what it passes on.
import { AbortError } from '@anthropic-ai/claude-agent-sdk';
import { ask, assert, call, exists, fine, model, project, read, results, sent, talk, text, until } from '../host.mjs';

const running = pid => { try { process.kill(pid, 0); return true; } catch { return false; } };
const sleeper = 'echo $$ > pid; sleep 300';
const child = () => Number(read('pid'));

// Abort while the model is asked.
await model.answers('hang');
const controller = new AbortController();
const waiting = ask('Wait.', { abortController: controller });
await model.reached(1);
controller.abort();
const aborted = await waiting;
assert.ok(aborted.error instanceof AbortError || /abort/i.test(aborted.error?.message), String(aborted.error));
await until(async () => (await model.requests())[0].left, 'the end of the request');

// Interrupt while a command runs: it ends, the session goes on.
await model.answers(call('s', 'Bash', { command: sleeper }), text('Alive.'));
const run = talk({ allowedTools: ['Bash'] });
run.send('Sleep.');
await until(() => exists('pid'), 'the command');
const from = Date.now();
const receipt = await run.q.interrupt();
assert.deepEqual(receipt?.still_queued ?? [], []);
const stopped = await run.next(m => m.type === 'result');
assert.ok(Date.now() - from < 10000);
assert.equal(stopped.subtype, 'error_during_execution');
assert.equal(run.toolResult('s').is_error, true);
await until(() => !running(child()), 'the end of the command');
assert.equal((await run.turn('Alive?')).result, 'Alive.');
await run.close();
const asked = (await model.requests()).at(-1);
assert.ok(sent(asked).includes('Sleep.') && sent(asked).includes('Alive?'));

// close() while a command runs leaves no child.
await model.answers(call('s', 'Bash', { command: 'rm pid; ' + sleeper }), text('Never.'));
const gone = talk({ allowedTools: ['Bash'] });
gone.send('Sleep.');
await until(() => exists('pid') && read('pid').trim() && running(child()), 'the command');
gone.q.close();
await until(() => !running(child()), 'the end of the command');

// A call that waits for the host ends with the host: it is denied, and the model told.
await model.answers(call('w', 'Write', { file_path: project + '/w', content: 'w' }), text('So be it.'));
let waits;
const left = talk({ canUseTool: () => new Promise(() => { waits = true; }) });
left.send('Write.');
await until(() => waits, 'the question');
const n = await model.count();
left.q.close();
await model.reached(n + 1);
assert.equal(results((await model.requests())[n]).w.is_error, true);
assert.equal(exists('w'), false);

// The environment reaches commands, and the SDK is named to the API.
await model.answers(call('e', 'Bash', { command: 'echo "<$COLOUR|$CLAUDECODE|$PWD>"' }), text('Seen.'));
const env = await fine('Env?', { allowedTools: ['Bash'], env: { COLOUR: 'teal' } });
assert.match(env.toolResult('e').content, new RegExp(`<teal\\|1\\|${project}>`));
assert.match((await model.requests()).at(-1).headers['user-agent'], /^cinch\/\S+ .*agent-sdk\/0\.3\.332/);
