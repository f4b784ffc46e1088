import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { makeCertificates } from "../../../../testing/zookeeper/certificates.ts";
import { AwsAccount } from "../src/account.ts";
import { kitError } from "../src/client/errors.ts";
import { mapError } from "../src/errors.ts";
import { sdkAt } from "./rig.ts";

/** An answer of EC2 without machines, and a page that a proxy gives in its place. */
const EMPTY = `<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><reservationSet/></DescribeInstancesResponse>`;
const PAGE = "<html><body>Please log in to this network.</body></html>";

let server: Server;
let port: number;
const asked: string[] = [];
let page: number | undefined;
const warnings: string[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(String(request.url));
    const headers =
      page === undefined
        ? { "content-type": "text/xml", "x-amzn-requestid": "1" }
        : { "content-type": "text/html" };
    response.writeHead(page ?? 200, headers).end(page === undefined ? EMPTY : PAGE);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => server.close());
afterEach(() => {
  vi.unstubAllEnvs();
  asked.length = 0;
  page = undefined;
});

const { signal } = new AbortController();
async function withAccount<T>(endpoint: string, work: (account: AwsAccount) => Promise<T>): Promise<T> {
  const place = {
    region: "us-west-2",
    profile: null,
    keysOfEnvironment: false,
  };
  const log = {
    debug() {},
    info() {},
    warn: (_: object, text: string) => void warnings.push(text),
    error() {},
  };
  const account = new AwsAccount({ place, sdk: sdkAt(endpoint, 5_000), clock: systemClock, log });
  try {
    return await work(account);
  } finally {
    await account.close();
  }
}
const list = ({ aws }: AwsAccount) => aws.call("ec2.describeInstances", {}, signal);

test("calls go through the proxy of the environment, but not to what NO_PROXY names", async () => {
  for (const name of ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "no_proxy"]) vi.stubEnv(name, undefined);
  vi.stubEnv("http_proxy", `http://127.0.0.1:${port}`);
  // A name that only the proxy has to know.
  await withAccount("http://ec2.lab.invalid", list);
  expect(asked).toEqual(["http://ec2.lab.invalid/"]);
  vi.stubEnv("NO_PROXY", "other.example,127.0.0.1");
  await withAccount(`http://127.0.0.1:${port}`, list);
  expect(asked[1]).toBe("/");
});

test.each([200, 403])(
  "a page of HTML with status %i is no list and no refusal of AWS's: the error has operation, host and status",
  async (status) => {
    page = status;
    const error = await withAccount(`http://127.0.0.1:${port}`, list).then(
      () => undefined,
      (thrown: unknown) => mapError(thrown, "lab: list"),
    );
    expect(error).toMatchObject({
      kind: "transient",
      message: expect.stringMatching(
        new RegExp(`ec2.DescribeInstances at 127.0.0.1 was answered ${status} with a page of HTML`),
      ),
    });
  },
);

test.each([
  ["PermanentRedirect", 301, "fatal"],
  ["SomethingNew", 409, "fatal"],
  ["SomethingNew", 410, "not-found"],
  ["SomethingNew", 422, "configuration"],
  ["SomethingNew", 425, "transient"],
  ["SomethingNew", 503, "transient"],
])("a code without a row, %s with status %i, is %s", (name, httpStatusCode, kind) => {
  const error = Object.assign(new Error(name), { name, $metadata: { httpStatusCode } });
  expect(mapError(kitError("ec2.runInstances", error), "lab").kind).toBe(kind);
});

test("the SDK's own warnings go to our log", async () => {
  await withAccount(`http://127.0.0.1:${port}`, async ({ aws }) => {
    const { logger } = (await aws.client("ec2")).config;
    logger.info("what a call has sent");
    logger.warn("socket usage at capacity");
  });
  expect(warnings).toEqual(["socket usage at capacity"]);
});

test("an authority of AWS_CA_BUNDLE is believed, as by boto3", async () => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-aws-authority-"));
  const { ca, cert, key } = await makeCertificates(folder);
  const secure = createSecureServer({ cert: readFileSync(cert), key: readFileSync(key) }, (_, response) =>
    response.writeHead(200, { "content-type": "text/xml", "x-amzn-requestid": "1" }).end(EMPTY),
  );
  try {
    await new Promise<void>((resolve) => secure.listen(0, "127.0.0.1", resolve));
    const address = `https://127.0.0.1:${(secure.address() as AddressInfo).port}`;
    await expect(withAccount(address, list)).rejects.toThrow("unable to verify");
    vi.stubEnv("AWS_CA_BUNDLE", ca);
    expect((await withAccount(address, list)).$metadata.httpStatusCode).toBe(200);
  } finally {
    secure.close();
    rmSync(folder, { recursive: true });
  }
});
