// Sessions on disk: resume, continue, fork, an id of one's own, and what the SDK reads in our files.
import { forkSession, getSessionInfo, getSessionMessages, listSessions, listSubagents, getSubagentMessages, renameSession, tagSession } from '@anthropic-ai/claude-agent-sdk';
import { ask, assert, at, call, fine, fs, home, model, path, project, said, sent, text, write } from '../host.mjs';

process.chdir(project);
write('a.txt', 'alpha\n');
await model.answers([text('I look.'), call('r', 'Read', { file_path: at('a.txt') })], text('It says alpha.'));
const first = await fine('What does a.txt say?', { allowedTools: ['Read'] });
const id = first.result.session_id;

// The SDK's own readers.
const [info, ...none] = await listSessions({ dir: project });
assert.equal(none.length, 0);
assert.equal(info.sessionId, id);
assert.equal(info.firstPrompt, 'What does a.txt say?');
assert.equal(info.cwd, project);
assert.ok(Math.abs(Date.now() - info.lastModified) < 600000 && info.fileSize > 0);
assert.equal((await getSessionInfo(id, { dir: project })).sessionId, id);
const messages = await getSessionMessages(id, { dir: project });
assert.deepEqual(messages.map(m => m.type), ['user', 'assistant', 'assistant', 'user', 'assistant']);
assert.deepEqual(messages.map(m => m.session_id), messages.map(() => id));
assert.match(said(messages[0].message.content), /What does a\.txt say\?/);
assert.match(said(messages[3].message.content), /alpha/);
assert.equal(said(messages[4].message.content), 'It says alpha.');
const uuids = new Set(messages.map(m => m.uuid));
for (const m of first.of('assistant')) assert.ok(uuids.has(m.uuid), 'the stream and the file name a message alike');

// Resumed, the model sees all of it, byte for byte.
await model.answers(text('Still alpha.'));
const second = await fine('And now?', { resume: id });
assert.equal(second.result.session_id, id);
const requests = await model.requests();
assert.deepEqual(requests[2].body.messages.slice(0, 3).map(m => said(m.content)), requests[1].body.messages.slice(0, 3).map(m => said(m.content)));
assert.match(said(requests[2].body.messages.at(-1).content), /And now\?/);

await model.answers(text('The newest.'));
assert.equal((await fine('Third.', { continue: true })).result.session_id, id);

// A fork leaves the old session as it is.
const bytes = () => fs.readFileSync(path.join(home, '.claude/projects', project.replace(/[^a-zA-Z0-9]/g, '-'), id + '.jsonl'), 'utf8');
const before = bytes();
await model.answers(text('Forked.'));
const fork = await fine('Elsewhere.', { resume: id, forkSession: true });
assert.notEqual(fork.result.session_id, id);
assert.equal(bytes(), before);
assert.ok(sent((await model.requests()).at(-1)).includes('Still alpha.'));

// Resumed at a message, what came later is not sent.
await model.answers(text('Back there.'));
const atAnswer = (await getSessionMessages(id, { dir: project })).find(m => said(m.message.content) === 'It says alpha.').uuid;
await fine('From here.', { resume: id, resumeSessionAt: atAnswer, forkSession: true });
const cut = sent((await model.requests()).at(-1));
assert.ok(cut.includes('It says alpha.') && !cut.includes('And now?') && !cut.includes('Still alpha.'));

// Names, tags and forks that the SDK writes into our file are understood.
await renameSession(id, 'Reading a file', { dir: project });
await tagSession(id, 'test', { dir: project });
const renamed = await getSessionInfo(id, { dir: project });
assert.deepEqual([renamed.customTitle, renamed.tag], ['Reading a file', 'test']);
await model.answers(text('Named.'));
assert.equal((await fine('Fourth.', { resume: id })).result.session_id, id);
assert.equal((await getSessionInfo(id, { dir: project })).customTitle, 'Reading a file', 'the name outlives a turn');
const made = await forkSession(id, { dir: project, title: 'By the SDK' });
await model.answers(text('In the fork of the SDK.'));
assert.equal((await fine('Fifth.', { resume: made.sessionId })).result.session_id, made.sessionId);
assert.ok(sent((await model.requests()).at(-1)).includes('It says alpha.'));

// An id of one's own, and no file at all.
const own = '5b0c1d2e-3f40-4a51-8b62-9c73ad84be95';
await model.answers(text('Own.'));
assert.equal((await fine('Own id.', { sessionId: own })).result.session_id, own);
assert.ok((await listSessions({ dir: project })).some(s => s.sessionId === own));
await model.answers(text('Unseen.'));
const unseen = await fine('Leave no trace.', { persistSession: false });
assert.ok(!(await listSessions({ dir: project })).some(s => s.sessionId === unseen.result.session_id));

// A session that is not there.
const n = await model.count();
const missing = await ask('Hello?', { resume: '00000000-0000-4000-8000-000000000000' });
assert.ok(missing.error);
assert.equal(await model.count(), n);

// Sub-agents have a file of their own, which the SDK finds.
await model.answers(call('agent', 'Agent', { description: 'look', prompt: 'Look around.', subagent_type: 'general-purpose', run_in_background: false }), text('All is calm.'), text('Calm.'));
const parent = await fine('Send someone.');
const subs = await listSubagents(parent.result.session_id, { dir: project });
assert.equal(subs.length, 1);
const sub = await getSubagentMessages(parent.result.session_id, subs[0], { dir: project });
assert.match(said(sub[0].message.content), /Look around\./);
assert.equal(said(sub.at(-1).message.content), 'All is calm.');
