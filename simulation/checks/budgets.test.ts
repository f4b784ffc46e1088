import { describe, expect, test } from "vitest";
import { handMade, json, locks, makes, NODE, sets } from "./hand-made.ts";

const REQUEST = "/nodepool/requests/100-0000000001";
const HOUR_MS = 3_600_000;
const budget = { tenant: "t1", amount: 10, currency: "EUR" };
const price = { driver_data: { nodeyard: { price: { per_hour: 5, currency: "EUR" } } } };
const node = {
  provider: "cloud",
  created_time: 0,
  tenant_name: "t1",
  allocated_to: "100-0000000009",
  ...price,
};
const ledger = (fields: object) => ({
  op: "set" as const,
  path: "/nodeyard/spending/1970-01|t1",
  data: json({ v: 1, whole: true, ...fields }),
});
const gone = { op: "delete" as const, path: NODE };

/** A node that costs 5 an hour goes after two hours, in one write with what is given. */
function ends(...with_: Parameters<ReturnType<typeof handMade>["does"]>[2][]) {
  const { does } = handMade({ budget });
  does(0, "zuul", makes(NODE, { ...node, state: "deleting" }));
  does(0, "launcher-0", locks("l"));
  does(2 * HOUR_MS - 1, "launcher-0", sets(NODE, { ...node, state: "deleted" }));
  does(2 * HOUR_MS, "launcher-0", gone, ...with_);
}

describe("what a node cost its tenant", () => {
  test("is in the ledger with the write that takes it, once", () => {
    ends(ledger({ instances: 1, EUR: 10 }));
    ends(ledger({ instances: 1, EUR: 10.05 }));
    for (const wrong of [
      { instances: 1, EUR: 8 },
      { instances: 2, EUR: 10 },
      { instances: 1, EUR: 20 },
    ])
      expect(() => ends(ledger(wrong))).toThrow("what a node cost its tenant is in the ledger, once");
    expect(() => ends()).toThrow("what a node cost its tenant is in the ledger, once");
  });
});

/** A request of the tenant is accepted at a time, when a node of it has cost 5 an hour from the beginning. */
function begins(at: number, tenant = "t1") {
  const { does } = handMade({ budget });
  const wants = { node_types: ["small"], requestor: "zuul", tenant_name: tenant };
  does(0, "launcher-0", makes("/nodepool/components/pool/p", { supported_labels: ["small"] }));
  does(0, "zuul", makes(NODE, { ...node, state: "in-use" }));
  does(1, "zuul", makes(REQUEST, { ...wants, state: "requested" }));
  does(2 * HOUR_MS, "other", makes("/any", {}));
  const lock = REQUEST.replace("requests/", "requests-lock/");
  does(at - 1, "launcher-0", { op: "create", path: `${lock}/l__lock__0000000000` });
  does(at, "launcher-0", sets(REQUEST, { ...wants, state: "pending" }));
}

test("no request begins a minute after its tenant's budget is used up", () => {
  begins(2 * HOUR_MS + 50_000);
  begins(2 * HOUR_MS + 70_000, "t2");
  expect(() => begins(2 * HOUR_MS + 70_000)).toThrow("no request begins when its tenant's budget is used up");
});
