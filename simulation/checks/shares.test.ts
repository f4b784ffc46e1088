import { expect, test } from "vitest";
import { handMade, makes, sets } from "./hand-made.ts";

const path = (number: number) => `/nodepool/requests/100-${String(number).padStart(10, "0")}`;
const wants = (tenant: string, state = "requested") => ({
  ...{ state, node_types: ["small"], requestor: tenant, tenant_name: tenant },
});

/** A tenant with a node is served so many times, while a request of one without any waits. */
function passed(times: number, weight = 1) {
  const shares = { tenants: new Map([["rich", weight]]), clients: new Map<string, number>() };
  const { does } = handMade({ shares });
  does(0, "launcher-0", makes("/nodepool/components/pool/p", { supported_labels: ["small"] }));
  const node = { state: "hold", type: ["small"], allocated_to: "100-0000000000", tenant_name: "rich" };
  does(1, "zuul", makes("/nodepool/nodes/0000000001", node));
  does(1, "zuul", makes("/nodepool/nodes/0000000002", { ...node, tenant_name: "poor" }));
  does(1, "zuul", makes("/nodepool/nodes/0000000003", node));
  does(2, "zuul", makes(path(1), wants("poor")));
  for (let number = 2; number < times + 2; number++) {
    does(number + 1, "zuul", makes(path(number), wants("rich")));
    const lock = path(number).replace("requests/", "requests-lock/");
    does(number + 1, "launcher-0", { op: "create", path: `${lock}/l__lock__0000000000` });
    does(number + 1, "launcher-0", sets(path(number), wants("rich", "pending")));
    const fulfilled = { ...wants("rich", "fulfilled"), node_types: [], nodes: [] };
    does(number + 1, "launcher-0", sets(path(number), fulfilled));
  }
}

test("somebody with less is passed sometimes, but not again and again; with less by weight", () => {
  passed(8);
  expect(() => passed(9)).toThrow("nobody waits below their share");
  passed(20, 2);
});
