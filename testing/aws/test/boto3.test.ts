import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AwsServer, motoPython, requireAws, startAws } from "../index.ts";

const SCRIPT = join(dirname(fileURLToPath(import.meta.url)), "with-boto3.py");
const run = promisify(execFile);

describe.skipIf(requireAws())("the double of AWS", () => {
  let aws: AwsServer;
  beforeAll(async () => {
    aws = await startAws();
  });
  afterAll(() => aws?.close());

  test("Amazon's client for Python is served as by EC2, EBS, S3, Service Quotas, the Price List and EventBridge", async () => {
    const { stdout } = await run(motoPython(), [SCRIPT, aws.url]);
    expect(stdout.trim().split("\n")).toHaveLength(15);
  });

  test("a dropped answer is of a call that happened, a dropped call of one that did not", async () => {
    const headers = { authorization: "AWS4-HMAC-SHA256 Credential=a/20260101/us-west-2/s3/aws4_request" };
    const put = (key: string) => fetch(`${aws.url}/nodepool/${key}`, { method: "PUT", body: "x", headers });
    const get = async (key: string) => (await fetch(`${aws.url}/nodepool/${key}`, { headers })).status;
    await aws.set({ faults: [{ call: "s3.PutObject", how: "drop-answer" }] });
    await expect(put("kept")).rejects.toThrow("fetch failed");
    await aws.set({ faults: [{ call: "s3.PutObject", how: "drop" }] });
    await expect(put("lost")).rejects.toThrow("fetch failed");
    expect([await get("kept"), await get("lost")]).toEqual([200, 404]);
  });

  test("a setting that is none is refused", async () => {
    await expect(aws.set({ pendinMs: 1 } as object)).rejects.toThrow("unknown settings: pendinMs");
  });
});
