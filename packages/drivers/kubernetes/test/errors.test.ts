import { type ApiCall, ApiError, CloudConfigError } from "@nodeyard/driver";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { Connection } from "../src/client/index.ts";
import { mapError, statusFault } from "../src/errors.ts";

const answered = (status: number, message: string) => {
  const text = JSON.stringify({ kind: "Status", code: status, message });
  return new ApiError("POST pods", { status, text }, statusFault({ text }));
};
const rbac =
  'pods is forbidden: User "system:serviceaccount:ci:nodeyard" cannot create resource "pods" in API group ""';

test.each([
  ["a credential that is refused", answered(401, "Unauthorized"), "access"],
  ["a right that is missing", answered(403, rbac), "access"],
  ["a kubeconfig that cannot be read", new CloudConfigError("the plugin failed"), "access"],
  [
    "an admission rule about this pod",
    answered(403, 'pods "a" is forbidden: violates PodSecurity "restricted:latest"'),
    "configuration",
  ],
  ["a quota", answered(403, 'pods "a" is forbidden: exceeded quota: compute'), "quota"],
  ["a body that is refused", answered(422, "Pod is invalid"), "configuration"],
])("%s", (_, error, kind) => expect(mapError(error, "p").kind).toBe(kind));

test.each([
  [200, "<html>log in</html>", /GET \/api\/v1\/pods got no answer: 200 by api.lab:6443 with a page/],
  [403, "<html>log in</html>", /GET \/api\/v1\/pods was answered 403 by api.lab:6443 with a page/],
  [302, "{}", /GET \/api\/v1\/pods was answered 302/],
])(
  "what answers with status %i in the API server's place is named with its address and the call",
  async (status, text, said) => {
    const clock = new VirtualClock();
    const route = { verify: true, ca: null, cert: null, key: null, serverName: null, proxy: null };
    const access = { server: "https://api.lab:6443", route, authorization: null, expires: null };
    const transport = {
      send: async () => ({ status, text }),
      stream: () => Promise.reject(new Error("nothing is watched")),
      close: async () => {},
    };
    const calls: ApiCall[] = [];
    const connection = new Connection({
      clock,
      observe: (call) => calls.push(call),
      random: seededRandom(1),
      resolve: async () => access as never,
      connect: () => transport as never,
    });
    const { signal } = new AbortController();
    const reading = connection.get({ path: "/api/v1/pods", signal });
    const failed = expect(reading).rejects.toThrow(said);
    for (let step = 0; step < 100; step++) await clock.advance(1_000);
    await failed;
    // A provider that is being opened shows it at once, while the call is repeated.
    expect(calls[0]).toMatchObject({ operation: "pods.GET", result: `${status}` });
    expect(calls[0]?.error).toEqual(status < 400 ? expect.any(Error) : undefined);
  },
);
