import { columns, type Row } from "@nodeyard/operations/listing";
import { describe, expect, test } from "vitest";
import { oldBody, type Query } from "../src/lists/body.ts";
import type { OldList } from "../src/lists/lists.ts";

const KNOWN = {} as never;
/** Nothing of a row is hidden. */
const as = (row: Row) => row;
const asked = (fields: Partial<Query> = {}): Query => ({
  json: true,
  fields: undefined,
  nodeId: undefined,
  ...fields,
});

function listOf(make: () => Iterable<Row>): OldList {
  return { columns: columns({ ID: "id", Comment: "comment" }), rows: async () => make() };
}

describe("a list that is long", () => {
  test.each([true, false])(
    "lets other work go on now and then, and is whole all the same (json: %s)",
    async (json) => {
      let others = 0;
      const pause = async () => void others++;
      const list = listOf(function* () {
        for (let id = 0; id < 1_000; id++) yield { id: `node-${id}`, comment: null };
      });
      const body = await oldBody(list, KNOWN, asked({ json }), as, pause);
      expect(others).toBeGreaterThanOrEqual(10);
      if (json) expect(JSON.parse(body)).toHaveLength(1_000);
      else expect(body.split("\n")).toHaveLength(1_000 + 5);
      expect(body).toContain("node-999");
    },
  );

  test("shows no row that is gone by then, and fails at none", async () => {
    const ids = new Set(Array.from({ length: 500 }, (_, at) => `${at}`));
    const list = listOf(function* () {
      for (const id of [...ids]) if (ids.has(id)) yield { id, comment: "c" };
    });
    const body = await oldBody(list, KNOWN, asked(), as, async () => ids.clear());
    expect(JSON.parse(body)).toHaveLength(100);
  });
});
