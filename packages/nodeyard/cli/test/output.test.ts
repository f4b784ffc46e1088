import { decodeNode, decodeRequest, type Lease } from "@nodeyard/model";
import {
  accessFields,
  age,
  cell,
  leaseColumns,
  leaseFields,
  leaseJobColumns,
  leaseJson,
  nodeColumns,
  nodeDetailColumns,
  nodeFields,
  plain,
  present,
  renderTable,
  requestFields,
  rowOf,
} from "@nodeyard/operations/listing";
import { systemMachine } from "@nodeyard/telemetry/machine";
import { describe, expect, test } from "vitest";
import type { LeaseProgress } from "../src/follow.ts";
import { type Described, describeProgram } from "../src/index.ts";
import { printRows } from "../src/listing.ts";
import { Progress } from "../src/progress.ts";
import { sshLine } from "../src/ssh-words.ts";

function node(fields: object) {
  return decodeNode(
    "0000000007",
    Buffer.from(JSON.stringify({ state: "ready", state_time: 1_000, ...fields })),
  );
}

const PLAIN = {
  tenant: null,
  heartbeat: null,
  until: null,
  verdict: null,
  expired: false,
  commit: false,
  job: null,
  data: null,
  set: null,
  why: null,
};

describe("tables", () => {
  test("four lines without rows", () => {
    expect(renderTable(["ID", "State"], [])).toBe(
      "+----+-------+\n| ID | State |\n+----+-------+\n+----+-------+\n",
    );
  });
  test("cells are padded to the widest", () => {
    expect(renderTable(["ID"], [["0000000001"], ["2"]])).toBe(
      "+------------+\n| ID         |\n+------------+\n| 0000000001 |\n| 2          |\n+------------+\n",
    );
  });
  test.each([
    [null, ""],
    [undefined, ""],
    [true, "True"],
    [false, "False"],
    [["a", "b"], "a,b"],
    [{ a: 1 }, '{"a":1}'],
    [7, "7"],
  ])("%j prints as %j", (value, text) => expect(cell(value)).toBe(text));
  test("ages are days, hours, minutes, seconds", () => {
    expect(age(100 * 86_400 + 3_661)).toBe("100:01:01:01");
    expect(age(-5)).toBe("00:00:00:00");
  });
  test("records cannot speak to the terminal", () => {
    expect(cell("a\u001b[2Jb\nc\u009b")).toBe("a [2Jb c ");
    expect(plain("\u0000")).toBe(" ");
  });
});

/** Daemons; commands whose output is that of another program; scripts and settings that a program reads as they are. */
const NO_JSON =
  /^(up|promote|launcher|builder|connect|garm|gitlab .*|run|shell|completion|sliverd (exec|freeze|thaw|snapshot|forget-snapshot|settings))$/;

test("every verb has --json", async () => {
  const verbs = (one: Described): readonly Described[] =>
    one.commands.length === 0 ? [one] : one.commands.flatMap(verbs);
  const all = verbs(await describeProgram(systemMachine()));
  const without = all.filter(({ options }) => !options.some(({ flags }) => flags.includes("--json")));
  expect(all.length).toBeGreaterThan(40);
  expect(without.map(({ path }) => path.join(" ")).filter((path) => !NO_JSON.test(path))).toEqual([]);
});

test("a lease of a thousand nodes is a short row in the table, and complete in JSON", () => {
  const nodes = Array.from({ length: 1_000 }, (_, at) => String(at).padStart(10, "0"));
  const lease: Lease = {
    id: "0123456789ab",
    state: "granted",
    owner: "ann@here",
    labels: nodes.map(() => "small"),
    request: "200-0000000001",
    nodes,
    created: 0,
    expires: 60_000,
    ...PLAIN,
    job: { system: "zuul", id: "b7", name: null, url: null },
  };
  const reported: string[] = [];
  const io = {
    out: (text: string) => void reported.push(text),
    err: () => {},
    isTerminal: false,
    ask: async () => undefined,
    columns: 80,
  };
  const rows = [rowOf(leaseFields, lease)];
  printRows(io, rows, leaseJobColumns, {});
  expect(reported.pop()).toContain(
    "| small:1000 | 200-0000000001 | zuul b7 | 0000000000 ... 0000000999 (1000) | 00:00:01:00 |",
  );
  printRows(io, rows, leaseColumns, { json: true, jsonAlso: leaseJson });
  expect(JSON.parse(reported.pop()!)).toMatchObject([{ labels: lease.labels, nodes }]);
});

describe("rows of nodes", () => {
  test("the old command's columns, nine and twenty-one of them", () => {
    expect(nodeColumns.map(({ heading }) => heading)).toEqual([
      "ID",
      "Provider",
      "Label",
      "Server ID",
      "Public IPv4",
      "IPv6",
      "State",
      "Age",
      "Locked",
    ]);
    expect(nodeDetailColumns).toHaveLength(24);
    const row = rowOf(nodeFields, { record: node({}), locked: false, deadLetter: false });
    // Each column has a value of the row, or is made of one.
    const keys = nodeDetailColumns.filter(({ value }) => value === undefined).map(({ key }) => key);
    expect(Object.keys(row)).toEqual(expect.arrayContaining(keys));
  });
  test("age counts from the last change of state", () => {
    const row = rowOf(nodeFields, { record: node({}), locked: true, deadLetter: false });
    expect(present(row, nodeColumns, { now: 1_065_000, ages: "text" })).toMatchObject({
      age: "00:00:01:05",
      locked: "locked",
    });
  });
  test("a cluster's credentials are not shown", () => {
    const record = node({ connection_port: { token: "secret" } });
    const { connection_port: port } = rowOf(nodeFields, { record, locked: false, deadLetter: false });
    expect(JSON.stringify(port)).toBe('"redacted"');
  });
});

describe("the command that logs in", () => {
  const base = { interface_ip: "192.0.2.1", connection_type: "ssh", username: "zuul" };
  const line = (fields: object) => sshLine(rowOf(accessFields, node(fields)) as never);
  test("the port is named unless it is 22", () => {
    expect(line({ ...base, connection_port: 22 })).toBe("ssh zuul@192.0.2.1");
    expect(line({ ...base, connection_port: 2222 })).toBe("ssh -p 2222 zuul@192.0.2.1");
  });
  test("what is not SSH has none", () => {
    expect(line({ ...base, connection_type: "winrm", connection_port: 5986 })).toBeUndefined();
    expect(line({ ...base, interface_ip: null, connection_port: 22 })).toBeUndefined();
    expect(line({ ...base, connection_port: { name: "cluster" } })).toBeUndefined();
  });
  test("names from outside are neither options nor shell words", () => {
    expect(line({ ...base, username: "a; rm -rf ~" })).toBe("ssh 'a; rm -rf ~@192.0.2.1'");
    expect(line({ ...base, username: "it's" })).toBe("ssh 'it'\\''s@192.0.2.1'");
    expect(line({ ...base, username: null, interface_ip: "-oProxyCommand=x" })).not.toMatch(/ -o/);
  });
});

describe("progress", () => {
  const lease = rowOf(leaseFields, {
    id: "0123456789ab",
    state: "waiting",
    owner: "a@b",
    labels: ["small"],
    request: "100-0000000001",
    nodes: [],
    created: 0,
    expires: 1,
    ...PLAIN,
  }) as unknown as LeaseProgress["lease"];
  const request = (fields: object) =>
    rowOf(
      requestFields,
      decodeRequest("100-0000000001", Buffer.from(JSON.stringify({ node_types: ["small"], ...fields }))),
    ) as unknown as LeaseProgress["request"];

  test("each fact is printed once", () => {
    const lines: string[] = [];
    let now = 0;
    const progress = new Progress(
      (line) => lines.push(line),
      () => now,
    );
    const nodes = new Map([
      [
        "0000000007",
        rowOf(nodeFields, {
          record: node({ state: "building", type: ["small"], provider: "p", pool: "main" }),
          locked: false,
          deadLetter: false,
        }),
      ],
    ]) as unknown as LeaseProgress["nodes"];
    progress.show({ lease, request: request({ state: "requested" }), nodes: new Map() });
    now = 1_500;
    progress.show({ lease, request: request({ state: "pending" }), nodes });
    progress.show({ lease, request: request({ state: "pending" }), nodes });
    progress.show({ lease: { ...lease, state: "granted" }, request: undefined, nodes });
    expect(lines).toEqual([
      "    0.0s  request 100-0000000001  requested  waiting for a pool to take it; why: nodeyard explain 100-0000000001\n",
      "    1.5s  node 0000000007  building  small  p/main\n",
      "    1.5s  request 100-0000000001  pending  a pool has taken it\n",
      "    1.5s  lease 0123456789ab  granted\n",
    ]);
  });
  test("the pools that declined are named", () => {
    const lines: string[] = [];
    const progress = new Progress(
      (line) => lines.push(line),
      () => 0,
    );
    progress.show({
      lease,
      request: request({ state: "failed", declined_by: ["a", "b"] }),
      nodes: new Map(),
    });
    expect(lines.join("")).toContain("declined by every pool: a, b");
  });
});
