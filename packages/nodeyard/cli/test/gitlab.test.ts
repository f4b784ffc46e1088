import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LoginYard } from "../../../../testing/login-yard.ts";
import { requireSshd } from "../../../../testing/sshd/index.ts";
import { Running } from "./nodeyard.ts";

const [BUILD_FAILURE, SYSTEM_FAILURE] = [71, 72];

/** A GitLab runner's custom executor calls a program four times or more for a job, as played here. */
describe.skipIf(requireSshd())("the custom executor of a GitLab runner", () => {
  let yard: LoginYard;
  beforeAll(async () => {
    yard = await LoginYard.open(2);
  });
  afterAll(() => yard?.close());

  function stage(job: number, ...words: readonly string[]) {
    const env = {
      BUILD_FAILURE_EXIT_CODE: String(BUILD_FAILURE),
      SYSTEM_FAILURE_EXIT_CODE: String(SYSTEM_FAILURE),
      CUSTOM_ENV_CI_JOB_ID: String(job),
      CUSTOM_ENV_CI_JOB_NAME: "unit",
      CUSTOM_ENV_CI_JOB_URL: `https://gitlab.example.org/g/p/-/jobs/${job}`,
      CUSTOM_ENV_CI_JOB_TIMEOUT: "600",
    };
    return new Running(["--state", yard.site.state, "gitlab", ...words], env).ended;
  }
  const login = () => ["--label", "small", "--identity", yard.key] as const;
  const script = (text: string) => {
    const file = join(yard.site.folder, "script");
    writeFileSync(file, text);
    return file;
  };

  test("a job has one node from prepare to cleanup, and is found by its number", async () => {
    const config = await stage(1, "config");
    expect(JSON.parse(config.out)).toMatchObject({
      builds_dir: "/tmp/gitlab/builds",
      shell: "bash",
      driver: { name: "nodeyard" },
    });
    const prepared = await stage(1, "prepare", ...login());
    expect([prepared.code, prepared.out]).toEqual([0, ""]);
    expect(prepared.err).toMatch(/Using node \d{10} of lab/);
    // The runner repeats a stage whose process was killed.
    expect((await stage(1, "prepare", ...login())).code).toBe(0);
    expect(await yard.leases()).toHaveLength(1);
    const ran = join(yard.site.folder, "ran");
    const first = await stage(
      1,
      "run",
      ...login(),
      script(`echo one >${ran}; echo out; echo err >&2`),
      "prepare_script",
    );
    expect([first.code, first.out, first.err]).toEqual([0, "out\n", "err\n"]);
    expect((await stage(1, "run", ...login(), script(`echo two >>${ran}`), "build_script")).code).toBe(0);
    expect(readFileSync(ran, "utf8")).toBe("one\ntwo\n");
    expect((await yard.site.run("explain", "job", "1")).out).toContain(
      "https://gitlab.example.org/g/p/-/jobs/1",
    );
    expect((await stage(1, "run", ...login(), script("exit 3"), "build_script")).code).toBe(BUILD_FAILURE);
    expect((await stage(1, "cleanup")).code).toBe(0);
    await expect.poll(() => yard.leases()).toEqual([]);
    expect((await stage(1, "cleanup")).code).toBe(0);
  });

  test("what is not the job's fault is a failure of the system, with its reason", async () => {
    const none = await stage(2, "prepare", "--label", "nothing-like-it", "--wait", "1s");
    expect([none.code, none.err.trim().split("\n").at(-1)]).toEqual([
      SYSTEM_FAILURE,
      expect.stringMatching(/^nodeyard: .*nothing-like-it/),
    ]);
    await expect.poll(() => yard.leases()).toEqual([]);
    const unnamed = await stage(2, "prepare");
    expect([unnamed.code, unnamed.err]).toEqual([SYSTEM_FAILURE, expect.stringContaining("no --label")]);
    const early = await stage(2, "run", ...login(), script("true"), "build_script");
    expect([early.code, early.err]).toEqual([SYSTEM_FAILURE, expect.stringContaining("job 2 has no node")]);
    await stage(2, "prepare", ...login());
    const refused = await stage(
      2,
      "run",
      "--label",
      "small",
      "--identity",
      "/dev/null",
      script("true"),
      "build_script",
    );
    expect([refused.code, refused.err]).toEqual([
      SYSTEM_FAILURE,
      expect.stringContaining("the connection to node"),
    ]);
    await stage(2, "cleanup");
    const outside = await yard.site.run("gitlab", "config");
    expect([outside.code, outside.err]).toEqual([
      2,
      expect.stringContaining("CUSTOM_ENV_CI_JOB_ID is not set"),
    ]);
  });
});
