// Hooks of the program: which are called, with what, and what their answers do.
import { assert, at, call, exists, fine, model, pause, read, results, sent, text, write } from '../host.mjs';

const calls = [];
const note = extra => async (input, id) => { calls.push([input.hook_event_name, id]); return typeof extra === 'function' ? extra(input, id) : extra ?? {}; };
const on = (hook, matcher) => [{ ...(matcher && { matcher }), hooks: [hook] }];

write('old.txt', 'old\n');
await model.answers(
  [call('r', 'Read', { file_path: at('old.txt') }), call('w', 'Write', { file_path: at('new.txt'), content: 'plain' })],
  call('b', 'Bash', { command: 'echo forbidden' }),
  call('f', 'Bash', { command: 'exit 4' }),
  text('Through.'),
  text('Through again.'),
);
let inputs = {};
const run = await fine('Go.', {
  allowedTools: ['Read', 'Write', 'Bash'],
  hooks: {
    UserPromptSubmit: on(note(input => { inputs.prompt = input; return { hookSpecificOutput: { hookEventName: 'UserPromptSubmit', additionalContext: 'The weather is fine.' } }; })),
    PreToolUse: [
      ...on(note(input => { inputs.pre = input; return { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'allow', updatedInput: { ...input.tool_input, content: 'changed' } } }; }), 'Write'),
      ...on(note(input => /forbidden/.test(input.tool_input.command) ? { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason: 'that word' } } : {}), 'Bash'),
    ],
    PostToolUse: on(note(input => { inputs.post = input; return { hookSpecificOutput: { hookEventName: 'PostToolUse', additionalContext: `After ${input.tool_name}.` } }; }), 'Read|Write'),
    PostToolUseFailure: on(note(input => { inputs.failure = input; return {}; })),
    Stop: on(note(input => input.stop_hook_active ? {} : { decision: 'block', reason: 'One more look.' })),
  },
});

assert.equal(read('new.txt'), 'changed', 'a hook changes the input');
assert.equal(run.toolResult('b').is_error, true);
assert.match(run.toolResult('b').content, /that word/);
assert.equal(run.toolResult('f').is_error, true);
assert.equal(run.result.result, 'Through again.', 'a stop hook sends the model back');

const names = calls.map(([name]) => name);
assert.equal(names[0], 'UserPromptSubmit');
assert.deepEqual(names.filter(n => n === 'Stop').length, 2);
assert.deepEqual(calls.filter(([n]) => n === 'PreToolUse').map(([, id]) => id).sort(), ['b', 'f', 'w']);
assert.deepEqual(calls.filter(([n]) => n === 'PostToolUse').map(([, id]) => id).sort(), ['r', 'w']);
assert.deepEqual(calls.filter(([n]) => n === 'PostToolUseFailure').map(([, id]) => id), ['f']);

assert.equal(inputs.prompt.prompt, 'Go.');
assert.equal(inputs.pre.tool_name, 'Write');
assert.equal(inputs.pre.tool_input.content, 'plain');
assert.equal(inputs.pre.session_id, run.init.session_id);
assert.equal(inputs.pre.cwd, process.env.PROJECT);
assert.ok(inputs.pre.transcript_path.endsWith(run.init.session_id + '.jsonl'));
assert.ok(inputs.post.tool_response);
assert.equal(inputs.failure.tool_name, 'Bash');
assert.ok(inputs.failure.error);

const requests = await model.requests();
assert.ok(sent(requests[0]).includes('The weather is fine.'));
assert.ok(sent(requests[1]).includes('After Read.') && sent(requests[1]).includes('After Write.'));
assert.equal(results(requests[2]).b.is_error, true);
assert.ok(sent(requests.at(-1)).includes('One more look.'));

// A hook that takes longer than it may does not let the call through.
await model.answers(call('late', 'Write', { file_path: at('late.txt'), content: 'x' }), text('Refused.'));
const late = await fine('Write.', { allowedTools: ['Write'], hooks: { PreToolUse: [{ timeout: 1, hooks: [async () => { await pause(4000); return {}; }] }] } });
assert.equal(late.toolResult('late').is_error, true);
assert.equal(exists('late.txt'), false);

// A prompt can be refused.
const before = await model.count();
const refused = await fine('secret', { hooks: { UserPromptSubmit: on(async () => ({ decision: 'block', reason: 'Not that.' })) } });
assert.equal(await model.count(), before, 'the model is not asked');
assert.equal(refused.result.num_turns, 0);
