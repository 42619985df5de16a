// A string prompt: what the stream carries, in which order, and what the model is asked.
import { assert, fine, model, MODEL, project, said, text } from '../host.mjs';

await model.answers([text('Good morning.'), text('What is to be done?')]);
const run = await fine('Good morning, harness.');

assert.deepEqual(run.kinds.filter(k => !k.startsWith('system/') || k === 'system/init'), ['system/init', 'assistant', 'assistant', 'result']);
assert.equal(run.init.cwd, project);
assert.equal(run.init.model, MODEL);
assert.equal(run.init.permissionMode, 'default');
assert.equal(run.init.apiKeySource, 'ANTHROPIC_API_KEY');
for (const tool of ['Bash', 'Read', 'Edit', 'Write', 'Task']) assert.ok(run.init.tools.includes(tool), tool);

const frames = run.of('assistant');
assert.deepEqual(frames.map(m => said(m.message.content)), ['Good morning.', 'What is to be done?'], 'one frame a block');
assert.equal(frames[0].message.id, frames[1].message.id);
assert.deepEqual(frames.map(m => m.parent_tool_use_id), [null, null]);
assert.equal(new Set(run.messages.map(m => m.session_id)).size, 1);
assert.equal(new Set(run.messages.map(m => m.uuid)).size, run.messages.length);

const { result } = run;
assert.match(result.result, /What is to be done\?$/);
assert.equal(result.num_turns, 1);
assert.equal(result.stop_reason, 'end_turn');
assert.deepEqual(result.permission_denials, []);
assert.deepEqual(Object.keys(result.modelUsage), [MODEL]);
assert.ok(result.total_cost_usd > 0 && result.duration_ms >= 0 && result.duration_api_ms >= 0);
assert.ok(result.usage.input_tokens + result.usage.cache_creation_input_tokens > 0 && result.usage.output_tokens > 0);

const requests = await model.requests();
assert.equal(requests.length, 1);
assert.equal(requests[0].body.model, MODEL);
assert.equal(requests[0].body.stream, true);
assert.equal(requests[0].headers['x-api-key'], 'test-key');
assert.equal(requests[0].headers['anthropic-version'], '2023-06-01');
assert.match(requests[0].headers['user-agent'], /^cinch\//);
assert.match(said(requests[0].body.messages.at(-1).content), /Good morning, harness\./);
