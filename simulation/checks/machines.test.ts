import { expect, test } from "vitest";
import { handMade, locks, makes, NODE, sets, unlocks } from "./hand-made.ts";

/** A node that launcher-0 is launching. */
function building() {
  const made = handMade();
  made.does(0, "launcher-0", makes(NODE, { state: "init" }));
  made.does(1, "launcher-0", locks("a"), sets(NODE, { state: "building" }));
  return made;
}

/** The same, given to Zuul. */
function inUse() {
  const made = building();
  made.does(2, "launcher-0", sets(NODE, { state: "ready" }), unlocks("a"));
  made.does(3, "zuul", locks("zuul"), sets(NODE, { state: "in-use" }));
  return made;
}

test("a machine is created and deleted under the lock of a node that is building", () => {
  const { acts } = building();
  for (const kind of ["create", "delete"] as const)
    for (const moment of ["sent", "done"] as const) acts({ kind, moment });
});

test("a create without a record, or without a node, is refused when it is sent", () => {
  const { acts } = building();
  expect(() => acts({ kind: "create", moment: "sent", node: "0000000009" })).toThrow("intent stands before");
  expect(() => acts({ kind: "create", moment: "sent", node: undefined })).toThrow("intent stands before");
});

test("a node that another launcher launches is left alone", () => {
  const { acts } = building();
  for (const kind of ["create", "delete"] as const)
    expect(() => acts({ kind, moment: "sent", client: "launcher-1" })).toThrow("under the node's lock");
});

test("the machine of a node in use stays, whichever process deletes it and whenever the call arrives", () => {
  const { acts } = inUse();
  for (const moment of ["sent", "done"] as const)
    expect(() => acts({ kind: "delete", moment })).toThrow("a machine stays while its node does");
});

test("a machine without a record may be deleted", () => {
  const { acts } = building();
  acts({ kind: "delete", moment: "sent", node: "0000000009", client: "launcher-1" });
});

test("a machine that is not ours stays", () => {
  const { acts } = building();
  expect(() => acts({ kind: "delete", moment: "sent", ours: false })).toThrow("without our id");
});

test("a process that cannot trust its session does nothing; one that cannot know that yet may", () => {
  const { acts, ends, does } = building();
  expect(() => acts({ kind: "create", moment: "sent", trusted: false })).toThrow("without trust");
  ends(10, "launcher-0", unlocks("a"));
  acts({ kind: "create", moment: "sent" });
  // In its next session it knows.
  expect(() => acts({ kind: "create", moment: "sent", session: 2n })).toThrow("under the node's lock");
  does(20, "launcher-1", locks("b"), sets(NODE, { state: "deleting" }));
  expect(() => acts({ kind: "create", moment: "sent" })).toThrow("intent stands before");
  acts({ kind: "create", moment: "done" });
});
