// A small job runtime in Node.js, without dependencies: one record of the operation, replaced
// atomically, and one audit file, appended to. It is run once for each phase of a probe:
// an order comes on stdin, one line goes to stdout (docs/own-runtime.md).

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const order = JSON.parse(readFileSync(0, "utf8"));
const RECORD = join(order.folder, "record.json");
const AUDIT = join(order.folder, "audit.jsonl");

// ---- What a runtime adds to be probed: where it stands, and the executor that it calls. ----

function reach(point, auditFile = []) {
  if (process.env.RCR_ARMED !== point) return;
  const [program, ...words] = JSON.parse(process.env.RCR_REACH);
  const struck = spawnSync(program, [...words, point, ...auditFile], { stdio: ["ignore", 2, 2] });
  if (struck.status !== 0) throw failure("INJECTED_FAULT", `injected at ${point}`);
}

function act() {
  const [program, ...words] = order.executor;
  const input = JSON.stringify(order.request);
  const acted = spawnSync(program, words, { input, stdio: ["pipe", "pipe", "inherit"] });
  if (acted.status !== 0) throw failure("EXECUTOR_FAILED", "the executor did not act");
  return JSON.parse(acted.stdout);
}

// ---- The runtime itself. ----

function start() {
  const known = stored();
  if (known.status === "succeeded") return;
  if (known.status !== "missing") throw failure("ALREADY_STARTED", `it is ${known.status}`);
  execute();
}

// Documented way "resume": whatever is not recorded as succeeded is executed again.
function resume() {
  const known = stored();
  if (known.status === "succeeded") return;
  if (known.digest && known.digest !== digest()) throw failure("REQUEST_CHANGED", "not approved");
  execute();
}

// Documented way "careful": evidence in the record is believed; without it, a person must look.
function careful() {
  const known = stored();
  if (known.status === "succeeded") return;
  if (known.digest && known.digest !== digest()) throw failure("REQUEST_CHANGED", "not approved");
  if (known.status === "missing") return void execute();
  save({ ...known, status: known.evidence.length ? "succeeded" : "verification_required" });
}

function execute() {
  const job = { status: "executing", digest: digest(), evidence: [] };
  save(job);
  log("started");
  try {
    reach("before_action");
    const evidence = act();
    reach("after_action");
    job.evidence.push(evidence);
    job.status = "succeeded";
    save(job);
    reach("after_result");
    reach("completion_audit", [AUDIT]);
    log("succeeded");
  } catch (error) {
    // One catch for the action and for what comes after it: "failed" then says too much.
    job.status = "failed";
    save(job);
    throw error;
  }
}

// ---- Records. ----

function stored() {
  try {
    return JSON.parse(readFileSync(RECORD, "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return { status: "missing", digest: null, evidence: [] };
    throw error;
  }
}

function save(job) {
  writeFileSync(`${RECORD}.new`, JSON.stringify(job));
  renameSync(`${RECORD}.new`, RECORD);
}

function log(event) {
  appendFileSync(AUDIT, `${JSON.stringify({ event })}\n`);
}

// The meaning of a request: its fields in one order, without the session that asks.
function digest() {
  const { session_id: _, ...meaning } = order.request;
  const sorted = Object.keys(meaning).sort().map((name) => [name, meaning[name]]);
  return createHash("sha256").update(JSON.stringify(sorted)).digest("hex");
}

function state() {
  const known = stored();
  return {
    status: known.status,
    evidence: known.evidence,
    approved_digest: known.digest,
    current_digest: digest(),
  };
}

function failure(code, message) {
  return Object.assign(new Error(message), { code });
}

const verbs = { start, resume, careful, again: start };

if (order.verb === "state") {
  console.log(JSON.stringify(state()));
} else {
  try {
    verbs[order.way ?? "start"]();
    console.log('{"error": null}');
  } catch (error) {
    console.error(error.message);
    console.log(JSON.stringify({ error: error.code ?? error.name }));
  }
}
