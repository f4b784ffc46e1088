import { describe, expect, test } from "vitest";
import { handMade, json, locks, makes, NODE, sets, unlocks } from "./hand-made.ts";

const LEASE = "/nodeyard/leases/abc";

describe("a lease of ten seconds", () => {
  const lease = (state: string) => ({ state, owner: "cli@for-10000", created: 1_000 });
  const asked = () => {
    const made = handMade();
    made.does(1_005, "cli", { op: "create", path: LEASE, data: json(lease("waiting")) });
    return made;
  };

  test("is not ended before its time, counted from its request", () => {
    const { does } = asked();
    does(5_000, "launcher-0", sets(LEASE, lease("granted")));
    expect(() => does(10_999, "launcher-0", sets(LEASE, lease("released")))).toThrow("lasts its time");
  });

  test("ends with its time, or when its owner gives it back", () => {
    asked().does(11_000, "launcher-0", sets(LEASE, lease("released")));
    const { does } = asked();
    does(2_000, "cli", sets(LEASE, lease("released")));
    does(2_100, "launcher-0", { op: "delete", path: LEASE });
  });

  test("is not deleted without a release", () => {
    expect(() => asked().does(2_000, "launcher-0", { op: "delete", path: LEASE })).toThrow("lasts its time");
  });

  test("is not held for long after it", () => {
    const { does, check } = asked();
    does(20_000, "launcher-0", sets(LEASE, lease("granted")));
    check.calm();
    does(320_000, "launcher-0", sets("/other", {}));
    expect(() => does(320_001, "launcher-0", sets("/other", {}))).toThrow("a lease ends when");
  });
});

describe("a hold of ten seconds", () => {
  const held = (seconds: number | null = 10) => {
    const made = handMade();
    made.does(0, "setup", makes(NODE, { state: "in-use" }));
    made.does(
      1_005,
      "zuul",
      locks("z"),
      sets(NODE, { state: "hold", state_time: 1, hold_expiration: seconds }),
      unlocks("z"),
    );
    return made;
  };
  const goes = [locks("d"), sets(NODE, { state: "deleting" })];

  test("is not ended early by a launcher, but may be by people", () => {
    expect(() => held().does(10_999, "launcher-0", ...goes)).toThrow("a hold lasts its time");
    held().does(11_000, "launcher-0", ...goes);
    held().does(2_000, "operator", ...goes);
  });

  test("that never expires is ended only by people", () => {
    expect(() => held(null).does(1_000_000, "launcher-0", ...goes)).toThrow("a hold lasts its time");
  });

  test("is not held for long after it", () => {
    const { check, does } = held();
    check.calm();
    expect(() => does(311_001, "launcher-0", sets("/other", {}))).toThrow("a hold ends when");
  });
});

describe("a static host", () => {
  const deserted = () => {
    const made = handMade({ hosts: "lab" });
    made.does(0, "setup", makes(NODE, { state: "ready", provider: "lab" }));
    made.does(1, "zuul", locks("z"), sets(NODE, { state: "in-use", provider: "lab" }));
    made.ends(1_000, "zuul", unlocks("z"));
    return made;
  };
  const goes = [locks("d"), sets(NODE, { state: "deleting", provider: "lab" })];

  test("rests when its user's session was lost", () => {
    expect(() => deserted().does(60_999, "launcher-0", ...goes)).toThrow("a deserted host rests");
    deserted().does(61_000, "launcher-0", ...goes);
  });

  test("is given again at once when its user returned it", () => {
    const { does } = handMade({ hosts: "lab" });
    does(0, "setup", makes(NODE, { state: "ready", provider: "lab" }));
    does(1, "zuul", locks("z"), sets(NODE, { state: "used", provider: "lab" }), unlocks("z"));
    does(2, "launcher-0", ...goes);
  });
});

describe("a node", () => {
  const REQUEST = "/nodepool/requests/100-0000000001";

  test("names its tenant and requestor as the client wrote them", () => {
    const { does } = handMade();
    const request = { state: "requested", node_types: ["small"], tenant_name: "t1", requestor: "zuul" };
    does(0, "zuul", makes(REQUEST, request));
    const node = { state: "init", allocated_to: "100-0000000001", requestor: "zuul" };
    does(1, "launcher-0", makes(NODE, { ...node, tenant_name: "t1" }));
    const other = NODE.replace(/2$/, "3");
    expect(() => does(2, "launcher-0", makes(other, node))).toThrow("a node names its tenant and requestor");
  });

  test("that is ready has the attributes of its label", () => {
    const expected = new Map([["small", { username: "ci", interface_ip: (ip: unknown) => ip !== null }]]);
    const { does } = handMade({ expected });
    const node = { state: "ready", type: ["small"], username: "ci", interface_ip: "192.0.2.1" };
    does(0, "launcher-0", makes(NODE, node));
    for (const [index, lacks] of [{ username: "zuul" }, { interface_ip: null }].entries()) {
      const other = NODE.replace(/2$/, String(index + 3));
      expect(() => does(1, "launcher-0", makes(other, { ...node, ...lacks }))).toThrow("can be used");
    }
  });

  test("is launched within the limits of its provider, concurrent and in all", () => {
    const one = new Map([["east", { instances: 1 }]]);
    const other = NODE.replace(/2$/, "3");
    for (const [limits, state] of [
      [{ launching: one }, "building"],
      [{ providers: one }, "ready"],
    ] as const) {
      const { does } = handMade(limits);
      does(0, "setup", makes(NODE, { state, provider: "east", launcher: "a" }));
      expect(() => does(1, "setup", makes(other, { state, provider: "east", launcher: "a" }))).toThrow(
        "limits",
      );
    }
  });
});

describe("min-ready of one", () => {
  const idle = () => {
    const made = handMade({ minReady: new Map([["small", 1]]) });
    made.does(0, "setup", makes(NODE, { state: "ready", type: ["small"] }));
    made.check.calm();
    made.does(130_000, "launcher-0", makes("/nodepool/requests/900-0000000001", asked("small")));
    return made;
  };
  const asked = (label: string) => ({ state: "requested", node_types: [label] });

  test("is not exceeded", () => {
    expect(() => idle().does(136_000, "launcher-0", sets("/other", {}))).toThrow("no more is kept ready");
  });

  test("is requested again when an idle node is about to be deleted", () => {
    const { does } = idle();
    does(130_001, "launcher-0", locks("d"), sets(NODE, { state: "deleting", type: ["small"] }));
    does(136_000, "launcher-0", sets("/other", {}));
  });

  test("is requested again while the record of the idle node cannot be read, and not after its repair (seed 321)", () => {
    const { check, does } = handMade({ minReady: new Map([["small", 1]]) });
    const node = { state: "ready", type: ["small"] };
    does(0, "setup", makes(NODE, node));
    does(1, "another program", { op: "set", path: NODE, data: Buffer.from("nonsense") });
    check.calm();
    does(130_000, "launcher-0", makes("/nodepool/requests/900-0000000001", asked("small")));
    does(136_000, "launcher-0", { op: "delete", path: "/nodepool/requests/900-0000000001" });
    does(136_001, "another program", sets(NODE, node));
    does(150_000, "launcher-0", makes("/nodepool/requests/900-0000000002", asked("small")));
    expect(() => does(156_000, "launcher-0", sets("/other", {}))).toThrow("no more is kept ready");
  });

  test("is only for labels that have it", () => {
    const { does } = handMade({ minReady: new Map() });
    expect(() => does(0, "launcher-0", makes("/nodepool/requests/900-1", asked("small")))).toThrow(
      "only labels",
    );
  });
});
