// Sub-agents: their own prompt, tools and conversation; side by side; in the background; denials of theirs.
import { assert, at, call, exists, fine, model, said, sent, system, talk, text, write } from '../host.mjs';

write('deep/treasure.txt', 'gold\n');
const agents = {
  finder: { description: 'Finds things', prompt: 'You are the finder.', tools: ['Read'], model: 'haiku' },
  writer: { description: 'Writes things', prompt: 'You are the writer.' },
};
const send = (id, type, prompt, more) => call(id, 'Agent', { description: 'a job', prompt, subagent_type: type, run_in_background: false, ...more });

await model.answers(
  ['when prompt Begin the hunt', text('I send someone.'), send('s1', 'finder', 'Hunt in deep.')],
  ['when system You are the finder.', call('read', 'Read', { file_path: at('deep/treasure.txt') })],
  ['when system You are the finder.', text('Gold it is.')],
  text('The finder says gold.'),
);
const run = await fine('Begin the hunt.', { agents });
assert.equal(run.result.result, 'The finder says gold.');
assert.ok(run.init.agents.includes('finder'));
const requests = await model.requests();
const theirs = requests.filter(r => system(r).includes('You are the finder.'));
assert.equal(theirs.length, 2);
assert.deepEqual(theirs[0].body.tools.map(t => t.name), ['Read']);
assert.match(theirs[0].body.model, /haiku/);
assert.ok(sent(theirs[0]).includes('Hunt in deep.') && !sent(theirs[0]).includes('Begin the hunt'));
const last = requests.at(-1);
assert.ok(!JSON.stringify(last.body.messages).includes('treasure.txt'), 'only the outcome comes back');
assert.match(sent(last), /Gold it is\./);

const inner = run.messages.filter(m => m.parent_tool_use_id === 's1');
assert.ok(inner.some(m => m.type === 'assistant' && m.message.content.some(b => b.id === 'read')));
assert.ok(inner.some(m => m.type === 'user' && m.message.content.some(b => b.tool_use_id === 'read')));
assert.equal(run.toolResult('s1').frame.parent_tool_use_id, null);
const started = run.of('system', 'task_started');
assert.deepEqual(started.map(m => m.tool_use_id), ['s1']);
assert.ok(run.result.modelUsage[theirs[0].body.model] && Object.keys(run.result.modelUsage).length === 2, 'its tokens count');

// Two at once, each with its own result; what a sub-agent may not do is asked of the host, and denied.
await model.answers(
  ['when prompt Both of you', send('w1', 'writer', 'Write one.'), send('w2', 'writer', 'Write two.')],
  ['when prompt Write one', call('one', 'Write', { file_path: at('one.txt'), content: '1' })],
  ['when prompt Write two', call('two', 'Write', { file_path: at('two.txt'), content: '2' })],
  ['when first Write one', text('One is written.')],
  ['when first Write two', text('Two was denied.')],
  text('Over.'),
);
const asked = [];
const pair = await fine('Both of you.', {
  agents,
  canUseTool: async (name, input, more) => {
    if (name !== 'Write') return { behavior: 'allow', updatedInput: input };
    asked.push([name, typeof more.agentID]);
    return input.file_path.endsWith('one.txt') ? { behavior: 'allow', updatedInput: input } : { behavior: 'deny', message: 'not two' };
  },
});
assert.deepEqual(asked, [['Write', 'string'], ['Write', 'string']]);
assert.deepEqual([exists('one.txt'), exists('two.txt')], [true, false]);
assert.match(said([pair.toolResult('w1')]), /One is written\./);
assert.match(said([pair.toolResult('w2')]), /Two was denied\./);
assert.equal(pair.result.result, 'Over.');
assert.deepEqual(pair.result.permission_denials.map(d => d.tool_use_id), ['two']);

// In the background: the turn ends, and the outcome starts another one.
await model.answers(
  ['when prompt Start it', call('bg', 'Agent', { description: 'a job', prompt: 'Work slowly.', subagent_type: 'writer', run_in_background: true })],
  ['when prompt Work slowly', 'sleep 700ms', text('The slow work is done.')],
  text('It runs.'),
  text('It is over.'),
);
const t = talk({ agents });
t.send('Start it.');
const one = await t.next(m => m.type === 'result');
const note = await t.next(m => m.type === 'system' && m.subtype === 'task_notification');
assert.equal(note.status, 'completed');
const two = await t.next(m => m.type === 'result');
assert.deepEqual([one.result, two.result], ['It runs.', 'It is over.']);
assert.ok(sent((await model.requests()).at(-1)).includes('The slow work is done.'));
await t.close();
