// The limits of turns and of money.
import { assert, ask, call, model, talk, text } from '../host.mjs';

await model.answers('repeat\n' + call('again%n', 'Bash', { command: 'date +%N' }));
const turns = await ask('Loop.', { maxTurns: 3, allowedTools: ['Bash'] });
assert.equal(turns.result.subtype, 'error_max_turns');
assert.equal(turns.result.is_error, true);
assert.equal(turns.result.terminal_reason, 'max_turns');
assert.ok(turns.result.errors.length > 0 && /3/.test(turns.result.errors[0]));
assert.ok(turns.error, 'the query ends with an error');
assert.equal(await model.count(), 3);

await model.answers('repeat\nusage in=900000 out=90000\n' + call('dear%n', 'Bash', { command: 'date +%N' }));
const money = await ask('Spend.', { maxBudgetUsd: 2, allowedTools: ['Bash'] });
assert.equal(money.result.subtype, 'error_max_budget_usd');
assert.ok(money.result.total_cost_usd >= 2);
assert.equal(await model.count(), 4, 'the first request spent all of it');

// The limit of turns counts for each prompt.
await model.answers(call('one', 'Bash', { command: 'echo 1' }), text('One.'), call('two', 'Bash', { command: 'echo 2' }), text('Two.'));
const run = talk({ maxTurns: 2, allowedTools: ['Bash'] });
assert.deepEqual([(await run.turn('a')).result, (await run.turn('b')).result], ['One.', 'Two.']);
await run.close();
