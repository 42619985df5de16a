// Plugins of the host: at the start, with initialize, and in a running session.
import { assert, at, fine, model, talk, text, write } from '../host.mjs';

const plugin = name => {
  write(`plugs/${name}/.claude-plugin/plugin.json`, JSON.stringify({ name }));
  write(`plugs/${name}/commands/go.md`, `Go with ${name} from \${CLAUDE_PLUGIN_ROOT}.`);
  return { type: 'local', path: at('plugs', name) };
};
const one = plugin('one'), two = plugin('two');

for (const pluginDelivery of ['argv', 'initialize']) {
  await model.answers(text('Went.'));
  const run = await fine('/one:go', { plugins: [one], pluginDelivery });
  assert.deepEqual(run.init.plugins.map(p => [p.name, p.path]), [['one', one.path]]);
  assert.ok(run.init.slash_commands.includes('one:go'));
  const requests = await model.requests();
  assert.ok(JSON.stringify(requests.at(-1)).includes(`Go with one from ${one.path}.`));
}

await model.answers(text('One.'), text('Two.'));
const t = talk({ plugins: [one] });
assert.equal((await t.turn('/one:go')).result, 'One.');
const after = await t.q.reloadPlugins({ addPlugins: [two] });
assert.deepEqual(after.plugins.map(p => p.name), ['one', 'two']);
assert.equal((await t.turn('/two:go')).result, 'Two.');
const requests = await model.requests();
assert.ok(JSON.stringify(requests.at(-1)).includes('Go with two from'));
await t.close();
