// The host decides: allow, deny, another input, rules for later, and a stop.
import { assert, ask, at, call, exists, fine, model, read, results, talk, text } from '../host.mjs';

const make = name => ({ file_path: at(name), content: name + '\n' });

// Allowed, denied, and allowed with another input.
await model.answers(call('a', 'Write', make('a')), call('b', 'Write', make('b')), call('c', 'Write', make('c')), text('Three tried.'));
const seen = [];
const run = await fine('Write.', {
  canUseTool: async (name, input, more) => {
    seen.push({ name, id: more.toolUseID, keys: Object.keys(input).sort().join(), signal: more.signal instanceof AbortSignal, suggestions: Array.isArray(more.suggestions) });
    if (input.file_path.endsWith('/b')) return { behavior: 'deny', message: 'b is taken' };
    if (input.file_path.endsWith('/c')) return { behavior: 'allow', updatedInput: { ...input, content: 'changed\n' } };
    return { behavior: 'allow', updatedInput: input };
  },
});
assert.deepEqual(seen, ['a', 'b', 'c'].map(id => ({ name: 'Write', id, keys: 'content,file_path', signal: true, suggestions: true })));
assert.deepEqual([exists('a'), exists('b'), read('c')], [true, false, 'changed\n']);
assert.equal(run.toolResult('b').is_error, true);
assert.match(run.toolResult('b').content, /b is taken/);
assert.deepEqual(run.result.permission_denials, [{ tool_name: 'Write', tool_use_id: 'b', tool_input: make('b') }]);
assert.equal(results((await model.requests())[2]).b.is_error, true);

// A rule that comes with an answer holds for the rest of the session.
await model.answers(call('x', 'Bash', { command: 'touch x' }), call('y', 'Bash', { command: 'touch y' }), text('Both.'));
let asked = 0;
await fine('Touch.', {
  canUseTool: async (name, input) => {
    asked++;
    return { behavior: 'allow', updatedInput: input, updatedPermissions: [{ type: 'addRules', rules: [{ toolName: 'Bash', ruleContent: 'touch *' }], behavior: 'allow', destination: 'session' }] };
  },
});
assert.deepEqual([asked, exists('x'), exists('y')], [1, true, true]);

// A rule for the project's local settings is kept there.
await model.answers(call('k', 'Bash', { command: 'mkdir kept' }), text('Kept.'));
await fine('Make.', {
  canUseTool: async (_, input) => ({ behavior: 'allow', updatedInput: input, updatedPermissions: [{ type: 'addRules', rules: [{ toolName: 'Bash', ruleContent: 'mkdir *' }], behavior: 'allow', destination: 'localSettings' }] }),
});
assert.deepEqual(JSON.parse(read('.claude/settings.local.json')).permissions.allow, ['Bash(mkdir *)']);

// The mode can be set by an answer.
await model.answers(call('m', 'Write', make('m')), call('n', 'Write', make('n')), text('Both.'));
asked = 0;
await fine('Write.', { canUseTool: async (_, input) => { asked++; return { behavior: 'allow', updatedInput: input, updatedPermissions: [{ type: 'setMode', mode: 'acceptEdits', destination: 'session' }] }; } });
assert.deepEqual([asked, exists('m'), exists('n')], [1, true, true]);

// A denial that interrupts ends the turn: the model is not asked again, the session goes on.
const before = await model.count();
await model.answers(call('i', 'Write', make('i')), text('On again.'));
const t = talk({ canUseTool: async () => ({ behavior: 'deny', message: 'stop all of it', interrupt: true }) });
const stopped = await t.turn('Write i.');
assert.equal(stopped.subtype, 'error_during_execution');
assert.equal(await model.count(), before + 1);
assert.equal((await t.turn('Still there?')).result, 'On again.');
await t.close();
assert.equal(exists('i'), false);

// A host that throws denies.
await model.answers(call('z', 'Write', make('z')), text('Refused.'));
const thrown = await ask('Write z.', { canUseTool: async () => { throw new Error('the host is out of order'); } });
assert.equal(thrown.toolResult('z').is_error, true);
assert.equal(exists('z'), false);
