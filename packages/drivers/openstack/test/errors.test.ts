import { ApiError, CloudConfigError, callText, DriverError, NoAnswer } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { serverSchema } from "../src/api/kinds.ts";
import { faultOf } from "../src/client/session.ts";
import { faultError, mapError } from "../src/errors.ts";

const at = { method: "POST", url: "http://nova/v2.1/servers" } as const;
const refused = (status: number, body: object | string) => {
  const answer = { status, headers: {}, text: typeof body === "string" ? body : JSON.stringify(body) };
  return new ApiError(callText(at, "compute"), answer, faultOf(answer));
};
const kind = (error: unknown) => mapError(error, "p").kind;
const nova = (message: string) => ({ forbidden: { code: 403, message } });
const neutron = (type: string) => ({ NeutronError: { type, message: "m", detail: "" } });

test.each([
  [
    "nova's quota",
    refused(403, nova("Quota exceeded for instances: Requested 1, but already used 20")),
    "quota",
  ],
  ["nova's ports", refused(403, nova("Maximum number of ports exceeded")), "quota"],
  ["nova's policy", refused(403, nova("Policy doesn't allow it to be performed")), "access"],
  [
    "cinder's quota",
    refused(413, { overLimit: { message: "VolumeSizeExceedsAvailableQuota: quota" } }),
    "quota",
  ],
  ["neutron's quota by its type", refused(409, neutron("OverQuota")), "quota"],
  ["no address left", refused(409, neutron("IpAddressGenerationFailure")), "capacity"],
  ["no floating IP left", refused(409, neutron("ExternalIpAddressExhausted")), "capacity"],
  ["a bad request", refused(400, { badRequest: { message: "Invalid flavorRef" } }), "configuration"],
  ["not there", refused(404, "<html><title>404</title>gone</html>"), "not-found"],
  ["not logged in", refused(401, { error: { message: "m" } }), "access"],
  ["a conflict", refused(409, { conflictingRequest: { message: "busy" } }), "transient"],
  ["overloaded", refused(429, ""), "transient"],
  ["broken", refused(500, { computeFault: { message: "m" } }), "transient"],
  ["no answer", new NoAnswer("got no answer: ECONNREFUSED"), "transient"],
  ["no such cloud", new CloudConfigError("cloud x is not known"), "access"],
  ["anything else", new TypeError("x is not a function"), "fatal"],
])("%s", (_, error, expected) => expect(kind(error)).toBe(expected));

test("an error is mapped once, even when a shared list has wrapped it", () => {
  const wrapped = new DriverError("fatal", "list of servers: x", { cause: refused(500, "") });
  expect(kind(wrapped)).toBe("transient");
  const quota = new DriverError("quota", "full");
  expect(mapError(quota, "p")).toBe(quota);
});

test.each([
  [413, "whatever", "quota"],
  [500, "Quota exceeded for cores", "quota"],
  [500, "No valid host was found. ", "capacity"],
  [500, "Exceeded maximum number of retries. Exhausted all hosts available", "capacity"],
  [500, "Build of instance X aborted: disk full", "transient"],
])("a server in ERROR with fault %i %s", (code, message, expected) => {
  const server = serverSchema.parse({ id: "s", status: "ERROR", fault: { code, message } });
  const error = faultError(server, "p");
  expect(error.kind).toBe(expected);
  expect(error.message).toContain(message.trim());
});

test("a page of HTML is read as text, and a long one is cut", () => {
  expect(
    refused(503, "<html><head><style>x{}</style></head><body><h1>Busy</h1></body></html>").message,
  ).toContain("was answered 503: Busy");
  expect(refused(500, "x".repeat(5_000)).message.length).toBeLessThan(700);
});
