// What the programs in cases share: the offline model that sdk_test.go started
// for them, and short ways to talk to cinch through the Agent SDK.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { query } from '@anthropic-ai/claude-agent-sdk';

export { assert, fs, path };
export const base = process.env.ANTHROPIC_BASE_URL;
export const home = process.env.HOME;
export const project = process.env.PROJECT;
export const MODEL = 'claude-sonnet-4-5';
export const at = (...names) => path.join(project, ...names);
export const pause = ms => new Promise(done => setTimeout(done, ms));

/** write puts a file into the project, or at an absolute path; what is no string becomes JSON. */
export function write(name, data, mode) {
  const file = path.resolve(project, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, typeof data === 'string' ? data : JSON.stringify(data, null, 2));
  if (mode) fs.chmodSync(file, mode);
  return file;
}
export const read = name => fs.readFileSync(path.resolve(project, name), 'utf8');
export const exists = name => fs.existsSync(path.resolve(project, name));

/** trust makes the project one whose settings are taken. */
export function trust() {
  fs.writeFileSync(path.join(home, '.claude.json'), JSON.stringify({ projects: { [project]: { hasTrustDialogAccepted: true } } }));
}

// Steps of the model's answers. An answer is a list of steps, or one step.
export const text = words => 'text ' + JSON.stringify(words);
export const call = (id, name, input = {}) => `tool ${id} ${name} ${JSON.stringify(input)}`;

export const model = {
  /** answers says what the model answers from now on; each is used once, in order, where its conditions hold. */
  async answers(...scripts) {
    const body = JSON.stringify(scripts.map(s => [s].flat().join('\n')));
    const r = await fetch(base + '/case/answers', { method: 'POST', body });
    if (!r.ok) throw new Error(await r.text());
  },
  /** requests are what the model was asked so far: {headers, body, status, left, usage, at}. */
  async requests() { return (await fetch(base + '/case/requests')).json(); },
  async count() { return (await this.requests()).length; },
  /** reached waits until the model has got n requests. */
  async reached(n) {
    await until(async () => await this.count() >= n, `request ${n}`);
  },
  /** refused says that the program sends what the API refuses, and means to. */
  async refused() { await fetch(base + '/case/violations', { method: 'POST' }); },
};

/** until waits for a condition, 30 s at most. */
export async function until(holds, what) {
  for (const end = Date.now() + 30000; Date.now() < end; await pause(10)) if (await holds()) return;
  throw new Error('waited 30 s in vain for ' + what);
}

/** said is all text of a message's content. */
export const said = content => typeof content === 'string' ? content
  : (content ?? []).map(b => b.type === 'tool_result' ? said(b.content) : b.text ?? '').join('\n');
/** sent is all text of the messages of a request. */
export const sent = request => request.body.messages.map(m => said(m.content)).join('\n');
/** system is the text of the system prompt of a request. */
export const system = request => said(request.body.system);
/** results are the tool results of the newest message of a request, by id. */
export const results = request => Object.fromEntries(request.body.messages.at(-1).content.filter(b => b.type === 'tool_result').map(b => [b.tool_use_id, b]));

const runs = [];
let stderr = '';
process.on('exit', code => {
  if (code === 0) return;
  for (const [i, run] of runs.entries()) {
    console.error(`--- run ${i}${run.error ? ': ' + run.error.message : ''}`);
    for (const m of run.messages) console.error(JSON.stringify(m).slice(0, m.subtype === 'init' ? 100 : 330));
  }
  if (stderr) console.error('--- stderr\n' + stderr);
});

export function options({ env, ...more } = {}) {
  const { CINCH, PROJECT, ...rest } = process.env;
  return { pathToClaudeCodeExecutable: CINCH, cwd: PROJECT, model: MODEL, env: { ...rest, ...env }, stderr: s => { stderr += s; }, ...more };
}
export const errors = () => stderr;

/** A Run is what a query said. */
export class Run {
  messages = [];
  constructor(q) { this.q = q; runs.push(this); }
  take(m) { this.messages.push(m); }
  of(type, subtype) { return this.messages.filter(m => m.type === type && (!subtype || m.subtype === subtype)); }
  get init() { return this.of('system', 'init')[0]; }
  get result() { return this.of('result').at(-1); }
  get blocks() { return this.messages.filter(m => m.type === 'assistant' || m.type === 'user').flatMap(m => Array.isArray(m.message.content) ? m.message.content.map(block => ({ ...block, frame: m })) : []); }
  get text() { return this.of('assistant').map(m => said(m.message.content)).join(''); }
  toolResult(id) {
    const found = this.blocks.filter(b => b.type === 'tool_result' && b.tool_use_id === id);
    assert.equal(found.length, 1, `results of ${id} in the stream`);
    return found[0];
  }
  get kinds() { return this.messages.map(m => m.type === 'system' ? m.type + '/' + m.subtype : m.type); }
}

/** ask runs a one-shot query to its end; what the iterator throws is in error. */
export async function ask(prompt, more = {}, each) {
  const run = new Run(query({ prompt, options: options(more) }));
  try {
    for await (const m of run.q) { run.take(m); await each?.(m, run); }
  } catch (e) { run.error = e; }
  return run;
}

/** fine is ask for a query that must succeed. */
export async function fine(prompt, more, each) {
  const run = await ask(prompt, more, each);
  if (run.error) throw run.error;
  assert.equal(run.result?.subtype, 'success');
  assert.equal(run.result.is_error, false, run.result.result);
  return run;
}

/** talk opens a query with streaming input. */
export function talk(more = {}) {
  const waiting = [];
  let wake = () => {}, closed = false, seen = 0;
  async function* input() {
    for (;;) {
      while (waiting.length) yield waiting.shift();
      if (closed) return;
      await new Promise(done => { wake = done; });
    }
  }
  const run = new Run(query({ prompt: input(), options: options(more) }));
  let over = false;
  const pump = (async () => {
    try { for await (const m of run.q) run.take(m); } catch (e) { run.error = e; }
    over = true;
  })();
  return Object.assign(run, {
    send(content, extra) {
      waiting.push({ type: 'user', message: { role: 'user', content }, parent_tool_use_id: null, session_id: '', ...extra });
      wake();
    },
    /** next waits for the next message that fits, and moves behind it. */
    async next(fits) {
      let found;
      await until(() => {
        while (!found && seen < run.messages.length) { const m = run.messages[seen++]; if (fits(m)) found = m; }
        if (!found && over) throw run.error ?? new Error('the query ended before the message that was waited for');
        return found;
      }, 'a message');
      return found;
    },
    async turn(content, extra) {
      this.send(content, extra);
      return this.next(m => m.type === 'result');
    },
    /** close ends the input and waits for the end of the query. */
    async close() {
      closed = true; wake();
      await until(() => over, 'the end of the query');
    },
  });
}
