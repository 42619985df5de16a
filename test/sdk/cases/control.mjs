// What a host can ask of a session, and what it can change in it.
import { assert, call, fs, home, model, MODEL, path, system, talk, text, trust, write } from '../host.mjs';

trust();
write('notes/plan.md', 'the plan\n');
write('.env', 'SECRET=1\n');
write('.claude/settings.json', { permissions: { allow: ['Bash(ls *)'], deny: ['Read(./.env)'] }, hooks: { Stop: [{ hooks: [{ type: 'command', command: 'true' }] }] } });
await model.answers('repeat\ntext "Well."');
const run = talk({ agents: { scout: { description: 'Looks ahead', prompt: 'You look ahead.' } }, settingSources: ['user', 'project', 'local'], title: 'A first title' });

const init = await run.q.initializationResult();
assert.equal(await model.count(), 0, 'the answer does not wait for a prompt');
for (const list of [init.commands, init.agents, init.models, init.available_output_styles]) assert.ok(Array.isArray(list) && list.length > 0);
assert.equal(init.output_style, 'default');
for (const c of await run.q.supportedCommands()) assert.ok(typeof c.name === 'string' && typeof c.description === 'string' && typeof c.argumentHint === 'string', JSON.stringify(c));
for (const name of ['compact', 'context', 'cost', 'clear', 'help', 'model']) assert.ok((await run.q.supportedCommands()).some(c => c.name === name), '/' + name);
for (const m of await run.q.supportedModels()) assert.ok(m.value && m.displayName && typeof m.description === 'string', JSON.stringify(m));
assert.deepEqual((await run.q.supportedAgents()).find(a => a.name === 'scout')?.description, 'Looks ahead');
for (const name of ['general-purpose', 'Explore', 'Plan']) assert.ok((await run.q.supportedAgents()).some(a => a.name === name), name);
assert.equal((await run.q.accountInfo()).apiKeySource, 'ANTHROPIC_API_KEY');
assert.deepEqual(await run.q.mcpServerStatus(), []);

await run.turn('Hello.');
const use = await run.q.getContextUsage();
assert.equal(use.model, MODEL);
assert.ok(use.totalTokens > 0 && use.maxTokens > use.totalTokens && use.percentage >= 0, JSON.stringify(use));
assert.ok(use.categories.length > 1);
for (const c of use.categories) assert.ok(typeof c.name === 'string' && Number.isInteger(c.tokens), JSON.stringify(c));

const usage = await run.q.usage_EXPERIMENTAL_MAY_CHANGE_DO_NOT_RELY_ON_THIS_API_YET({ skipBehaviors: true });
assert.ok(usage.session.total_cost_usd > 0 && usage.session.model_usage[MODEL].outputTokens > 0);
assert.equal(usage.rate_limits_available, false);

const file = await run.q.readFile('notes/plan.md');
assert.deepEqual([file.contents, file.absPath], ['the plan\n', path.join(process.env.PROJECT, 'notes/plan.md')]);
assert.equal(await run.q.readFile('.env'), null, 'a deny rule holds for the host, too');
assert.equal(await run.q.readFile('nowhere.md'), null);

// What was written since can be loaded.
write('.claude/skills/brew/SKILL.md', '---\nname: brew\ndescription: Makes tea\n---\nBoil water.\n');
assert.ok((await run.q.reloadSkills()).skills.some(s => s.name === 'brew'));
write('.claude/output-styles/terse.md', '---\nname: terse\ndescription: Few words\n---\nUse few words.\n');
assert.ok((await run.q.reloadOutputStyles()).available_output_styles.includes('terse'));
const plugins = await run.q.reloadPlugins();
for (const list of [plugins.commands, plugins.agents, plugins.plugins, plugins.mcpServers]) assert.ok(Array.isArray(list));
assert.equal(plugins.error_count, 0);

// Settings of the host are in force at once.
await run.q.applyFlagSettings({ permissions: { deny: ['Bash(ls *)'] } });
await model.answers(call('ls', 'Bash', { command: 'ls notes' }), 'repeat\ntext "Well."');
await run.turn('List.');
assert.equal(run.toolResult('ls').is_error, true);
await run.q.applyFlagSettings({ permissions: null });
await model.answers(call('ls2', 'Bash', { command: 'ls notes' }), 'repeat\ntext "Well."');
await run.turn('List.');
assert.ok(!run.toolResult('ls2').is_error);

await run.q.setMaxThinkingTokens(4000);
await run.turn('Think.');
assert.notEqual((await model.requests()).at(-1).body.thinking?.type ?? 'disabled', 'disabled');
await run.q.setMaxThinkingTokens(0);
await run.turn('Do not think.');
assert.equal((await model.requests()).at(-1).body.thinking?.type ?? 'disabled', 'disabled');

const overridden = await run.q.setMcpPermissionModeOverride('none', 'default').catch(e => e);
assert.ok(overridden, 'it is answered, one way or the other');
await run.q.seedReadState(path.join(process.env.PROJECT, 'notes/plan.md'), Math.floor(fs.statSync(path.join(process.env.PROJECT, 'notes/plan.md')).mtimeMs));
await assert.rejects(run.q.stopTask('no-such-task'));
await assert.rejects(run.q.updateSettings('localSettings', { permissions: 'x' }));
await run.q.updateSettings('localSettings', { outputStyle: 'terse' });
assert.equal(JSON.parse(fs.readFileSync(path.join(process.env.PROJECT, '.claude/settings.local.json'), 'utf8')).outputStyle, 'terse');
await run.close();
assert.equal(run.error, undefined);
