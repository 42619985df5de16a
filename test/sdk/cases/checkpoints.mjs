// Files go back to what they were before a prompt; a dry run says what would change.
import { assert, at, call, exists, fs, model, read, talk, text, write } from '../host.mjs';

write('kept.txt', 'one\n');
const [p1, p2] = ['6a1f0f0e-6c2e-4f0b-9a51-1d2c3b4a5f60', '6a1f0f0e-6c2e-4f0b-9a51-1d2c3b4a5f61'];
await model.answers(
  call('r', 'Read', { file_path: at('kept.txt') }), [call('e', 'Edit', { file_path: at('kept.txt'), old_string: 'one', new_string: 'two' }), call('n', 'Write', { file_path: at('new.txt'), content: 'new\n' })], text('First.'),
  [call('e2', 'Edit', { file_path: at('kept.txt'), old_string: 'two', new_string: 'three' }), call('n2', 'Write', { file_path: at('later.txt'), content: 'later\n' })], text('Second.'),
);
const run = talk({ enableFileCheckpointing: true, permissionMode: 'acceptEdits', extraArgs: { 'replay-user-messages': null } });
await run.turn('Change.', { uuid: p1 });
await run.turn('Change more.', { uuid: p2 });
assert.deepEqual(run.of('user').filter(m => m.isReplay).map(m => m.uuid), [p1, p2]);
const state = () => [read('kept.txt').trim(), exists('new.txt'), exists('later.txt')];
assert.deepEqual(state(), ['three', true, true]);

const names = r => r.filesChanged.map(f => f.split('/').pop()).sort();
const dry = await run.q.rewindFiles(p1, { dryRun: true });
assert.equal(dry.canRewind, true);
assert.deepEqual(names(dry), ['kept.txt', 'later.txt', 'new.txt']);
assert.deepEqual(state(), ['three', true, true]);

const back = await run.q.rewindFiles(p2);
assert.equal(back.canRewind, true);
assert.deepEqual(names(back), ['kept.txt', 'later.txt']);
assert.deepEqual(state(), ['two', true, false]);
assert.equal((await run.q.rewindFiles(p1)).canRewind, true);
assert.deepEqual(state(), ['one', false, false]);

const nowhere = await run.q.rewindFiles('6a1f0f0e-6c2e-4f0b-9a51-1d2c3b4a5fff').catch(e => ({ canRewind: false, error: e.message }));
assert.equal(nowhere.canRewind, false);
assert.ok(nowhere.error);
await run.close();
