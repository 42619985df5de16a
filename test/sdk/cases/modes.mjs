// Permission modes, and how they and the model change in a session.
import { assert, ask, at, call, exists, fine, model, MODEL, talk, text } from '../host.mjs';

const make = name => call('t-' + name, 'Write', { file_path: at(name), content: name });
const shell = name => call('t-' + name, 'Bash', { command: `touch ${name}` });

// default without a host denies, and says so.
await model.answers(make('d'), text('Denied.'));
const denied = await fine('Write.');
assert.deepEqual([exists('d'), denied.result.permission_denials.length], [false, 1]);

// acceptEdits writes files, but runs no command that it was not allowed.
await model.answers(make('e'), call('t-f', 'Bash', { command: 'curl http://127.0.0.1:1/' }), text('Half.'));
const edits = await fine('Write.', { permissionMode: 'acceptEdits' });
assert.deepEqual([exists('e'), edits.toolResult('t-f').is_error], [true, true]);
assert.equal(edits.init.permissionMode, 'acceptEdits');

// dontAsk never asks.
let asked = 0;
await model.answers(shell('g'), text('Denied.'));
const quiet = await fine('Touch.', { permissionMode: 'dontAsk', canUseTool: async (_, input) => { asked++; return { behavior: 'allow', updatedInput: input }; } });
assert.deepEqual([exists('g'), asked, quiet.toolResult('t-g').is_error], [false, 0, true]);

// bypassPermissions needs the second option, and then asks nothing.
await model.answers(shell('h'), text('Done.'));
await fine('Touch.', { permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true, env: { IS_SANDBOX: '1' } });
assert.equal(exists('h'), true);

// plan changes nothing until the plan is taken.
await model.answers(make('p'), call('t-plan', 'ExitPlanMode', { plan: '1. Write p.' }), call('t-p2', 'Write', { file_path: at('p'), content: 'p' }), text('Planned.'));
const names = [];
const plan = await fine('Plan.', {
  permissionMode: 'plan',
  canUseTool: async (name, input) => {
    names.push(name);
    if (name === 'Write' && !names.includes('ExitPlanMode')) return { behavior: 'deny', message: 'not yet' };
    return { behavior: 'allow', updatedInput: input };
  },
});
assert.ok(names.includes('ExitPlanMode'), names.join());
assert.equal(plan.toolResult('t-p').is_error, true);
assert.equal(exists('p'), true);

// Both change between the turns of a session.
await model.answers(make('q'), text('No.'), make('r'), text('Yes.'), text('Other.'), text('Back.'));
const run = talk();
await run.turn('Write q.');
assert.equal((await run.q.setPermissionMode('acceptEdits'))?.mode, 'acceptEdits');
await run.turn('Write r.');
assert.deepEqual([exists('q'), exists('r')], [false, true]);
await run.q.setModel('claude-haiku-4-5');
const other = await run.turn('Who are you?');
await run.q.setModel();
await run.turn('And now?');
await run.close();
const requests = (await model.requests()).slice(-2).map(r => r.body.model);
assert.equal(requests[0], 'claude-haiku-4-5');
assert.notEqual(requests[1], 'claude-haiku-4-5');
assert.ok(other.modelUsage['claude-haiku-4-5'] && other.modelUsage[MODEL], Object.keys(other.modelUsage).join());
// A mode that does not exist is refused.
await model.answers(text('x'));
const bad = await ask('hi', { permissionMode: 'whatever' });
assert.ok(bad.error, 'an unknown mode ends with an error');
