import { expect, test } from "vitest";
import { z } from "zod";
import { type ConfigFinding, INTEGER, Key, Reader } from "../../src/index.ts";

const board = Key.section({
  name: Key.text("Its name.", { needed: true }),
  "boot-timeout": Key.seconds("For it to answer.", { default: 60 }).as("bootTimeoutMs"),
  own: Key.group({
    "max-boards": Key.integer("At once.", Key.NO_LIMIT),
    address: Key.text("Where.").map((path, at, key) => {
      if (path?.startsWith("/") === false) at.error(key, `is ${path}; write a path`);
      return path;
    }),
  }),
  "with-serial": Key.flag("Has a serial line.", Key.inherited("the pool's")),
  "old-name": Key.text("As before.", { deprecated: true }).accepted("is accepted; it is old"),
  idle: Key.text("Nothing.").unused(),
});
const lab = Key.section({
  boards: Key.entries(board, "The boards."),
  pdu: Key.inner(Key.section({ outlets: Key.texts("Names.", { default: ["a"] }) }), "Its power."),
});

function read(raw: object): { values: ReturnType<typeof lab.read>; reported: string[] } {
  const reported: string[] = [];
  const report = ({ severity, path, message }: ConfigFinding) =>
    reported.push(`${severity} ${path.join(".")} ${message}`);
  return { values: lab.read(new Reader(raw as Record<string, unknown>, [], report)), reported };
}

test("a table compiles to values under their names, with every default", () => {
  const { values, reported } = read({ boards: [{ name: "b", "max-boards": 3 }] });
  expect(reported).toEqual([]);
  const { at, ...first } = values!.boards[0]!;
  expect(at.path).toEqual(["boards", 0]);
  expect(first).toEqual({
    name: "b",
    bootTimeoutMs: 60_000,
    own: { maxBoards: 3, address: null },
    withSerial: undefined,
    oldName: null,
  });
  expect(values!.pdu).toEqual({ outlets: ["a"] });
});

test("an entry without what the loader needs is left out, after all that is wrong with it was reported", () => {
  const { values, reported } = read({ boards: [{ address: "x", "max-boards": "many" }, { name: "b" }] });
  expect(values!.boards.map(({ name }) => name)).toEqual(["b"]);
  expect(reported).toEqual([
    "error boards.0.name is missing and must be a string",
    "error boards.0.max-boards must be a number",
    "error boards.0.address is x; write a path",
  ]);
});

test("the validator judges by the same table: types, needed keys, and no others", () => {
  const messages = (raw: object) => lab.schema.safeParse(raw).error?.issues.map(({ message }) => message);
  expect(messages({ boards: [{ name: "b", "boot-timeout": 1, "max-boards": 2 }] })).toBeUndefined();
  expect(messages({ boards: [{ "boot-timeout": "1", "max-bords": 2 }] })).toEqual([
    "must be a string",
    "must be an integer, without quotes or decimal point",
    "is not a key here; did you mean max-boards?",
  ]);
});

test("the page knows of each key what the table says", () => {
  const { properties } = z.toJSONSchema(board.schema, { unrepresentable: "any" });
  expect(Object.keys(properties!)).toEqual([
    ...["name", "boot-timeout", "max-boards", "address", "with-serial", "old-name", "idle"],
  ]);
  expect(properties).toMatchObject({
    "boot-timeout": { type: "integer", description: "For it to answer.", default: 60, unit: "s" },
    "max-boards": { default: "no limit" },
    "with-serial": { type: "boolean", default: "the pool's" },
    "old-name": { deprecated: true },
  });
});

test("keys that are accepted, and about which there is something to say", () => {
  expect(lab.notes({ boards: [{ name: "b" }, { idle: "x", "old-name": "y" }] })).toEqual([
    { source: "schema", path: ["boards", 1, "old-name"], message: "is accepted; it is old" },
    { source: "effect", path: ["boards", 1, "idle"], message: "has no effect; remove it" },
  ]);
  expect(lab.notes({ boards: "none", pdu: [] })).toEqual([]);
});

test("a word of a few, a key that another one makes count, and keys of any name", () => {
  const power = Key.section({
    mode: Key.choice("How.", ["off", "timed"]),
    after: Key.integer("When.", { default: 5 }).when(({ raw }) => raw.mode === "timed"),
  });
  const reported: string[] = [];
  const of = (raw: Record<string, unknown>) =>
    power.read(
      new Reader(raw, [], ({ path, message }) => void reported.push(`${path.join(".")} ${message}`)),
    );
  expect([of({ after: "soon" }), of({ mode: "timed" })]).toEqual([
    { mode: "off", after: undefined },
    { mode: "timed", after: 5 },
  ]);
  expect(reported).toEqual([]);
  expect(of({ mode: "on" })).toMatchObject({ mode: "off" });
  expect(reported).toEqual(["mode is on; write off or timed"]);

  const amounts = Key.openSection({ name: Key.text("Whose.") }, INTEGER).schema;
  expect(amounts.safeParse({ name: "x", boards: 3 }).success).toBe(true);
  for (const raw of [{ boards: "3" }, { name: 3 }, []]) expect(amounts.safeParse(raw).success).toBe(false);
});
