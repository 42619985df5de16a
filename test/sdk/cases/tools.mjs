// The tools a host sees most: files, search, commands, lists, background work; results in the order of the calls.
import { assert, at, call, exists, fine, model, read, said, talk, text, until, write } from '../host.mjs';

write('src/a.go', 'package a\n\nvar needle = 1\n');
write('src/b.txt', 'needle\r\nhay\r\n');
const edit = (id, file, old_string, new_string, more) => call(id, 'Edit', { file_path: at(file), old_string, new_string, ...more });
await model.answers(
  [call('r1', 'Read', { file_path: at('src/a.go') }), call('r2', 'Read', { file_path: at('src/b.txt') }), call('g', 'Glob', { pattern: '**/*.go' }), call('s', 'Grep', { pattern: 'needle', output_mode: 'content', '-n': true })],
  [edit('e1', 'src/a.go', 'needle', 'pin'), edit('e2', 'src/b.txt', 'hay', 'straw'), call('w', 'Write', { file_path: at('deep/er/c.txt'), content: 'c\n' })],
  [edit('e3', 'src/b.txt', 'nowhere', 'x'), call('x', 'Bash', { command: 'echo out; echo err >&2; exit 5', description: 'fail' })],
  text('Done.'),
);
const run = await fine('Work.', { allowedTools: ['Read', 'Edit', 'Write', 'Glob', 'Grep', 'Bash'] });
assert.deepEqual([read('src/a.go'), read('src/b.txt'), read('deep/er/c.txt')], ['package a\n\nvar pin = 1\n', 'needle\r\nstraw\r\n', 'c\n']);
const text1 = id => said([run.toolResult(id)]);
assert.match(text1('r1'), /3\s+var needle = 1/);
assert.match(text1('g'), /a\.go/);
assert.match(text1('s'), /a\.go:3:/);
assert.match(text1('s'), /b\.txt:1:/);
assert.equal(run.toolResult('e3').is_error, true);
assert.equal(run.toolResult('x').is_error, true);
assert.match(text1('x'), /out[\s\S]*err[\s\S]*5|5[\s\S]*out[\s\S]*err/);
const { tool_use_result: wrote } = run.toolResult('w').frame;
assert.deepEqual([wrote.type, wrote.filePath, wrote.content], ['create', at('deep/er/c.txt'), 'c\n']);
const { tool_use_result: edited } = run.toolResult('e1').frame;
assert.deepEqual([edited.oldString, edited.newString, Array.isArray(edited.structuredPatch)], ['needle', 'pin', true]);
const { tool_use_result: got } = run.toolResult('r1').frame;
assert.deepEqual([got.type, got.file.filePath, got.file.totalLines >= 3], ['text', at('src/a.go'), true]);
const [, second, third] = await model.requests();
assert.deepEqual(second.body.messages.at(-1).content.filter(b => b.type === 'tool_result').map(b => b.tool_use_id), ['r1', 'r2', 'g', 's']);
assert.deepEqual(third.body.messages.at(-1).content.filter(b => b.type === 'tool_result').map(b => b.tool_use_id), ['e1', 'e2', 'w']);

// A call starts while the model still writes.
write('early.txt', 'early\n');
await model.answers([call('early', 'Bash', { command: 'touch started' }), 'sleep 1500ms', text('A long explanation.')], text('Ended.'));
let soon;
await fine('Start.', { allowedTools: ['Bash'] }, async m => { if (m.type === 'assistant' && said(m.message.content) === 'A long explanation.') soon = exists('started'); });
assert.equal(soon, true);

// A command in the background goes on while the turn ends; its end starts a turn; another one is stopped.
await model.answers(call('bg', 'Bash', { command: 'while [ ! -e go ]; do sleep 0.05; done; echo finished', run_in_background: true }), text('Started.'), text('Heard of it.'));
const t = talk({ allowedTools: ['Bash'] });
assert.equal((await t.turn('Background.')).result, 'Started.');
const task = t.of('system', 'task_started').at(-1);
assert.equal(task.tool_use_id, 'bg');
write('go', '');
const note = await t.next(m => m.type === 'system' && m.subtype === 'task_notification');
assert.deepEqual([note.task_id, note.status], [task.task_id, 'completed']);
assert.equal((await t.next(m => m.type === 'result')).result, 'Heard of it.');
await model.answers(call('bg2', 'Bash', { command: 'sleep 300', run_in_background: true }), 'repeat\ntext "Ok."');
await t.turn('Background again.');
await t.q.stopTask(t.of('system', 'task_started').at(-1).task_id);
const end = await t.next(m => m.type === 'system' && m.subtype === 'task_notification');
assert.equal(end.status, 'stopped');
await t.close();

// A list of what is to be done.
await model.answers(call('c', 'TaskCreate', { subject: 'Boil water', description: 'In the kettle', activeForm: 'Boiling' }), call('u', 'TaskUpdate', { taskId: '1', status: 'completed' }), call('l', 'TaskList'), text('Listed.'));
const list = await fine('Tea.', { tools: ['TaskCreate', 'TaskUpdate', 'TaskList'] });
assert.match(said([list.toolResult('l')]), /Boil water/);
assert.match(said([list.toolResult('l')]), /completed/);
