// The forms of the system prompt, instruction files by setting source, commands and skills.
import { assert, fine, home, model, path, said, sent, system, text, trust, write } from '../host.mjs';

trust();
const everything = r => system(r) + '\n' + sent(r);
const last = async () => (await model.requests()).at(-1);
await model.answers('repeat\ntext "Well."');

await fine('Hi.');
const bare = system(await last()).length;
await fine('Hi.', { systemPrompt: 'You speak in verse.' });
assert.match(system(await last()), /You speak in verse\./);
assert.ok(system(await last()).length < bare + 2000, 'nothing of the preset stands beside it');
await fine('Hi.', { systemPrompt: { type: 'preset', preset: 'claude_code' } });
const preset = system(await last());
assert.ok(preset.length > 2000, 'the preset is the harness\'s own prompt');
assert.ok(!/Claude Code/.test(preset), 'which does not pose as another');
await fine('Hi.', { systemPrompt: { type: 'preset', preset: 'claude_code', append: 'Always name your sources.' } });
assert.ok(system(await last()).length > preset.length && system(await last()).includes('Always name your sources.'));
await fine('Hi.', { systemPrompt: ['Part one.', 'Part two.'] });
assert.match(system(await last()), /Part one\.[\s\S]*Part two\./);

// Instruction files count by source.
write('CLAUDE.md', 'Project instructions: tabs, not blanks.\n@extra/more.md\n');
write('extra/more.md', 'Imported instructions: no globals.\n');
write('CLAUDE.local.md', 'Local instructions: be quick.\n');
write(path.join(home, '.claude/CLAUDE.md'), 'User instructions: speak Latin.\n');
await fine('Hi.', { settingSources: [] });
assert.doesNotMatch(everything(await last()), /Project instructions|User instructions|Local instructions/);
await fine('Hi.', { settingSources: ['user'] });
assert.match(everything(await last()), /speak Latin/);
assert.doesNotMatch(everything(await last()), /tabs, not blanks/);
await fine('Hi.', { settingSources: ['user', 'project', 'local'] });
for (const words of ['tabs, not blanks', 'no globals', 'be quick', 'speak Latin']) assert.ok(everything(await last()).includes(words), words);

// Commands and skills.
write('.claude/commands/greet.md', '---\ndescription: Greets\nargument-hint: NAME\n---\nGreet $ARGUMENTS in the way of $0.\n');
write('.claude/skills/brew/SKILL.md', '---\nname: brew\ndescription: Makes tea of any kind\n---\nBoil water first, then wait.\n');
const run = await fine('/greet sailors', { settingSources: ['project'] });
assert.ok(run.init.slash_commands.includes('greet') && run.init.skills.includes('brew'), JSON.stringify([run.init.slash_commands, run.init.skills]));
assert.match(sent(await last()), /Greet sailors in the way of sailors\./);
await fine('Hi.', { settingSources: ['project'] });
assert.match(everything(await last()), /Makes tea of any kind/, 'the model is told of skills');
await model.answers('tool s Skill {"skill":"brew"}', text('Brewed.'));
const brewed = await fine('Tea.', { settingSources: ['project'], skills: 'all' });
assert.ok(!brewed.toolResult('s').is_error);
assert.match(sent(await last()), /Boil water first/);
