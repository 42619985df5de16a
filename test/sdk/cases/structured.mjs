// Structured output: the schema goes to the model, what fits comes back, what does not is sent back.
import { ask, assert, call, fine, model, text } from '../host.mjs';

const schema = { type: 'object', properties: { town: { type: 'string' }, people: { type: 'integer', minimum: 1 } }, required: ['town', 'people'], additionalProperties: false };
const outputFormat = { type: 'json_schema', schema };
await model.answers(call('s%n', 'StructuredOutput', { town: 'Bern', people: 134000 }), text('Given.'));
const run = await fine('A town?', { outputFormat });
assert.deepEqual(run.result.structured_output, { town: 'Bern', people: 134000 });
const offered = (await model.requests())[0].body.tools.find(t => t.name === 'StructuredOutput');
assert.deepEqual(offered.input_schema.properties.people, schema.properties.people);

// The wrong type first, then the right one.
await model.answers(call('w%n', 'StructuredOutput', { town: 'Bern', people: 'many' }), call('s%n', 'StructuredOutput', { town: 'Thun', people: 43000 }), text('Given.'));
const second = await fine('A town?', { outputFormat });
assert.deepEqual(second.result.structured_output, { town: 'Thun', people: 43000 });

// A model that only talks is asked for the object.
await model.answers(text('It is Biel.'), call('s%n', 'StructuredOutput', { town: 'Biel', people: 55000 }), text('Given.'));
const third = await fine('A town?', { outputFormat });
assert.deepEqual(third.result.structured_output, { town: 'Biel', people: 55000 });

// A model that never gives it ends with the error made for it.
await model.answers('repeat\n' + call('w%n', 'StructuredOutput', { people: 0 }));
const never = await ask('A town?', { outputFormat });
assert.equal(never.result.subtype, 'error_max_structured_output_retries');
assert.equal(never.result.is_error, true);
assert.ok(await model.count() < 30);
