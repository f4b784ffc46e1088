import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VirtualClock } from "@nodeyard/runtime";
import { afterEach, expect, test, vi } from "vitest";
import { AGED, credentialsOf } from "../src/client/login.ts";
import { sdk } from "../src/index.ts";

const folder = mkdtempSync(join(tmpdir(), "nodeyard-login-"));
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

test("a credentials file that is replaced is used within a minute, at once after a refusal for age, and not while half written", async () => {
  const file = join(folder, "credentials");
  const keys = (id: string) =>
    writeFileSync(
      file,
      `[default]\naws_access_key_id = ${id}\naws_secret_access_key = the-secret-of-${id}\n`,
    );
  for (const name of ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"])
    vi.stubEnv(name, undefined);
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", file);
  vi.stubEnv("AWS_CONFIG_FILE", join(folder, "none"));
  vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
  const clock = new VirtualClock();
  const credentials = credentialsOf(
    { region: "us-west-2", profile: null, keysOfEnvironment: false },
    sdk,
    clock,
  );
  const id = async () => (await credentials.get()).accessKeyId;
  keys("AKIAFIRST");
  expect(await id()).toBe("AKIAFIRST");
  keys("AKIASECOND");
  await clock.advance(61_000);
  expect(await id()).toBe("AKIASECOND");
  keys("AKIATHIRD");
  expect(["InsufficientInstanceCapacity", "ExpiredToken"].map((code) => AGED.test(code))).toEqual([
    false,
    true,
  ]);
  expect(await id()).toBe("AKIASECOND");
  credentials.refused();
  expect(await id()).toBe("AKIATHIRD");
  writeFileSync(file, "[defau");
  await clock.advance(61_000);
  expect(await id()).toBe("AKIATHIRD");
});
