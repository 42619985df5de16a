// Hooks of settings files: commands get the event as JSON, and answer by exit code or JSON.
import { assert, call, exists, fine, model, read, sent, text, trust, write } from '../host.mjs';

trust();
write('hook.sh', `#!/bin/sh
cat > "$1.json"
case "$1" in
pre) if grep -q dangerous pre.json; then echo 'no such thing here' >&2; exit 2; fi ;;
prompt) echo 'Today is Tuesday.' ;;
start) echo '{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"Welcome to the project."}}' ;;
stop) if [ ! -e stopped ]; then touch stopped; echo '{"decision":"block","reason":"Tidy up first."}'; fi ;;
esac
`, 0o755);
const run1 = name => [{ hooks: [{ type: 'command', command: `"$CLAUDE_PROJECT_DIR"/hook.sh ${name}` }] }];
write('.claude/settings.json', {
  hooks: {
    SessionStart: run1('start'), UserPromptSubmit: run1('prompt'), Stop: run1('stop'),
    PreToolUse: [{ matcher: 'Bash', hooks: run1('pre')[0].hooks }, { matcher: 'Bash', hooks: [{ type: 'command', command: 'exit 1' }] }],
    PostToolUse: [{ matcher: 'Bash', hooks: run1('post')[0].hooks }],
    NoSuchEvent: run1('never'),
  },
});
await model.answers(call('a', 'Bash', { command: 'echo harmless' }), call('b', 'Bash', { command: 'touch dangerous' }), text('Over.'), text('Tidy.'));
const run = await fine('Begin.', { settingSources: ['project'], allowedTools: ['Bash'], includeHookEvents: true });

assert.ok(!run.toolResult('a').is_error, 'an exit code of 1 blocks nothing');
assert.equal(run.toolResult('b').is_error, true);
assert.match(run.toolResult('b').content, /no such thing here/);
assert.equal(exists('dangerous'), false);
assert.equal(run.result.result, 'Tidy.');

const requests = await model.requests();
for (const words of ['Welcome to the project.', 'Today is Tuesday.']) assert.ok(sent(requests[0]).includes(words), words);
assert.ok(sent(requests.at(-1)).includes('Tidy up first.'));

const pre = JSON.parse(read('pre.json'));
assert.equal(pre.hook_event_name, 'PreToolUse');
assert.equal(pre.tool_name, 'Bash');
assert.equal(pre.tool_input.command, 'touch dangerous');
assert.equal(pre.tool_use_id, 'b');
assert.equal(pre.session_id, run.init.session_id);
assert.equal(JSON.parse(read('start.json')).source, 'startup');
assert.equal(JSON.parse(read('prompt.json')).prompt, 'Begin.');
assert.match(JSON.stringify(JSON.parse(read('post.json')).tool_response), /harmless/);
assert.equal(exists('never.json'), false);
assert.ok(run.of('system', 'hook_started').length >= 5 && run.of('system', 'hook_response').length >= 5, 'the host is told of hooks');
