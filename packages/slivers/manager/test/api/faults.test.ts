import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { METHODS } from "../../src/api/methods/index.ts";
import type { XmlRpcValue } from "../../src/api/xmlrpc/write.ts";
import type { Caller } from "../../src/core/permit.ts";
import { incoming } from "../core/arbitrary.ts";
import { ApiRig, CONTROL, ROOT, sliver, WireFault } from "./rig.ts";

const caller = fc.constantFrom<Caller[]>(ROOT, CONTROL, sliver("ada"), sliver("laz"), {
  account: "anonymous",
  role: "anonymous",
  generation: 0,
});
const method = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...METHODS.keys()) },
  { weight: 1, arbitrary: fc.string() },
);
const target = fc.constantFrom("ada", "bob", "laz", "ctl", "nobody", "__proto__", "constructor", "");
const loans = fc.array(
  fc.tuple(
    target,
    fc.constantFrom("cpu_share", "net_max", "disk_max", "cpuShare"),
    fc.oneof(fc.integer(), fc.boolean(), fc.string()),
  ),
  { maxLength: 3 },
);
const param = fc.oneof(target, loans, fc.jsonValue({ maxDepth: 2 }));
const params = fc.oneof(fc.array(param, { maxLength: 3 }), fc.tuple(target), fc.tuple(target, loans));

const started = async () => {
  const rig = new ApiRig("v2");
  await rig.start();
  await rig.deliver(1, [
    incoming("ada", 1),
    incoming("bob", 1, { delegations: [{ caller: "ada", method: "GetRSpec" }] }),
    incoming("laz", 1, { instantiation: "delegated" }),
    incoming("ctl", 1, { kind: "controller", instantiation: "nm-controller" }),
  ]);
  return rig;
};

describe("33: faults", () => {
  test("a call that is refused changes nothing, whatever it was, in every dialect", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(caller, method, params, fc.nat(3)), { minLength: 5, maxLength: 10 }),
        async (calls) => {
          const rig = await started();
          for (const [who, name, list, way] of calls) {
            const before = rig.manager.state;
            const log = rig.machine.log.length;
            const path = ["/json", "/json/r0", "/r0", "/v2"][way]!;
            const answer = path.startsWith("/json")
              ? rig.json(who, name, list, path)
              : wire(list).then((values) => rig.call(who, name, values, path));
            const failed = await answer.then(
              () => false,
              (error) => {
                if (!(error instanceof WireFault || error instanceof NotWireError)) throw error;
                return true;
              },
            );
            if (!failed) continue;
            expect(rig.manager.state).toBe(before);
            expect(rig.machine.log).toHaveLength(log);
          }
        },
      ),
      { numRuns: 60 },
    ));

  test("a body that is no call is a fault; another path or verb is not found, and nothing changes", async () => {
    const rig = await started();
    const before = rig.manager.state;
    const post = (path: string, body: string) => rig.handler({ method: "POST", path, body }, ROOT);
    for (const body of ["", "{}", "null", '{"method":"Help"}', '{"method":1,"params":[]}', "<a/>"]) {
      expect(JSON.parse((await post("/json", body)).body)).toMatchObject({ fault: { code: 1 } });
      expect((await post("/", body)).body).toContain("<int>1</int>");
    }
    for (const path of ["/x", "/__proto__", "/json/native", "//"])
      expect((await post(path, "")).status).toBe(404);
    expect((await rig.handler({ method: "GET", path: "/", body: "" }, ROOT)).status).toBe(405);
    expect(rig.manager.state).toBe(before);
  });
});

class NotWireError extends Error {}

/** As far as XML-RPC can carry it. */
async function wire(list: readonly unknown[]): Promise<XmlRpcValue[]> {
  const carried = (value: unknown): boolean =>
    typeof value === "number"
      ? Number.isInteger(value) && Math.abs(value) < 2 ** 31
      : typeof value !== "object" || value === null || Object.values(value).every(carried);
  if (!list.every(carried)) throw new NotWireError();
  return list as XmlRpcValue[];
}
