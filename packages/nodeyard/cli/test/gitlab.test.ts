import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LoginYard } from "../../../../testing/login-yard.ts";
import { requireTools } from "../../../../testing/skipped.ts";
import { requireSshd } from "../../../../testing/sshd/index.ts";
import { freePort } from "../../../../testing/zookeeper/ports.ts";
import { Running } from "./nodeyard.ts";

const [BUILD_FAILURE, SYSTEM_FAILURE] = [71, 72];

/** A GitLab runner's custom executor calls a program four times or more for a job, as played here. */
describe.skipIf(requireSshd())("the custom executor of a GitLab runner", () => {
  let yard: LoginYard;
  beforeAll(async () => {
    yard = await LoginYard.open(2);
  });
  afterAll(() => yard?.close());

  function start(job: number, words: readonly string[], more: Readonly<Record<string, string>> = {}) {
    const env = {
      BUILD_FAILURE_EXIT_CODE: String(BUILD_FAILURE),
      SYSTEM_FAILURE_EXIT_CODE: String(SYSTEM_FAILURE),
      CUSTOM_ENV_CI_JOB_ID: String(job),
      CUSTOM_ENV_CI_JOB_NAME: "unit",
      CUSTOM_ENV_CI_JOB_URL: `https://gitlab.example.org/g/p/-/jobs/${job}`,
      CUSTOM_ENV_CI_JOB_TIMEOUT: "600",
      ...more,
    };
    return new Running(["--state", yard.site.state, "gitlab", ...words], env);
  }
  const stage = (job: number, ...words: readonly string[]) => start(job, words).ended;
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
    const codes = { BUILD_EXIT_CODE_FILE: join(yard.site.folder, "exit-code") };
    const failed = await start(1, ["run", ...login(), script("exit 3"), "build_script"], codes).ended;
    expect([failed.code, readFileSync(codes.BUILD_EXIT_CODE_FILE, "utf8")]).toEqual([BUILD_FAILURE, "3"]);
    expect((await stage(1, "run", ...login(), script("exit 255"), "build_script")).code).toBe(BUILD_FAILURE);
    expect((await stage(1, "cleanup", ...login())).code).toBe(0);
    await expect.poll(() => yard.leases()).toEqual([]);
    expect((await stage(1, "cleanup")).code).toBe(0);
  });

  test("what a job leaves in caches is kept when the runner says that it has succeeded", async () => {
    for (const [job, status, kept] of [
      [21, "success", true],
      [22, "failed", undefined],
      [23, "running", undefined],
    ] as const) {
      expect((await stage(job, "prepare", ...login())).code).toBe(0);
      const said = { CUSTOM_ENV_CI_JOB_STATUS: status };
      expect((await start(job, ["cleanup", ...login()], said).ended).code).toBe(0);
      await expect.poll(() => yard.leases()).toEqual([]);
      const { events } = await yard.site.json<{ events: { event: string; facts: { commit?: true } }[] }>(
        "explain",
        "job",
        String(job),
      );
      expect(events.find(({ event }) => event === "lease.ended")?.facts.commit).toBe(kept);
    }
  });

  test("a stage keeps the lease alive while it runs, and the clean-up ends what the job has left on the node", async () => {
    await stage(3, "prepare", ...login());
    const heard = async () => (await yard.site.json<{ expires: string }[]>("list", "--leases"))[0]!.expires;
    const before = await heard();
    const pids = join(yard.site.folder, "pids");
    const leave = `nohup sleep 1000 >/dev/null 2>&1 & echo $! >${pids}`;
    expect((await stage(3, "run", ...login(), script(leave), "prepare_script")).code).toBe(0);
    expect(await heard()).not.toBe(before);
    const cancelled = start(3, [
      "run",
      ...login(),
      script(`echo $$ >>${pids}; sleep 1000; :`),
      "build_script",
    ]);
    const processes = () => readFileSync(pids, "utf8").trim().split("\n").map(Number);
    const isAlive = (pid: number) => existsSync(`/proc/${pid}`);
    await expect.poll(() => processes().length).toBe(2);
    // As the runner does when a job is cancelled.
    expect((await cancelled.kill("SIGTERM")).code).toBe(SYSTEM_FAILURE);
    expect(processes().map(isAlive)).toEqual([true, true]);
    expect((await stage(3, "cleanup", ...login())).code).toBe(0);
    await expect.poll(() => processes().map(isAlive)).toEqual([false, false]);
  });

  test("a job is the one that the server names, whatever job its variables name", async () => {
    const answer = (id: number, host = "gitlab.example.org") => {
      const file = join(yard.site.folder, `response-${host}-${id}.json`);
      const repo_url = `https://gitlab-ci-token:secret@${host}/g/p.git`;
      writeFileSync(file, JSON.stringify({ id, job_info: { name: "unit" }, git_info: { repo_url } }));
      return { JOB_RESPONSE_FILE: file };
    };
    expect((await start(7, ["prepare", ...login()], answer(7)).ended).code).toBe(0);
    const job = (await yard.site.run("explain", "job", "7")).out;
    expect(job).toContain("https://gitlab.example.org/g/p/-/jobs/7");
    // Caches may be kept for each project, which only the request in the tree says.
    const stored = ["-ra", '"project":"gitlab.example.org/g/p"', yard.site.state];
    expect(execFileSync("grep", stored, { encoding: "latin1" })).toContain("requestor_data");
    expect(job).not.toContain("secret");
    // Of another project, and of another server: their variables name job 7.
    for (const [forged, said] of [
      [answer(8), "job 8 has no node"],
      [answer(7, "other.example.org"), "job 7 has no node"],
      [{ JOB_RESPONSE_FILE: "" }, "JOB_RESPONSE_FILE"],
    ] as const) {
      const ran = await start(7, ["run", ...login(), script("true"), "build_script"], forged).ended;
      expect([ran.code, ran.err]).toEqual([SYSTEM_FAILURE, expect.stringContaining(said)]);
      await start(7, ["cleanup", ...login()], forged).ended;
      expect(await yard.leases()).toHaveLength(1);
    }
    expect((await start(7, ["prepare", ...login()], answer(8)).ended).code).toBe(0);
    expect(await yard.leases()).toHaveLength(2);
    for (const id of [7, 8]) await start(7, ["cleanup", ...login()], answer(id)).ended;
    await expect.poll(() => yard.leases()).toEqual([]);
  });

  test("a node that cannot be cleaned is not used again", async () => {
    await stage(4, "prepare", ...login());
    const refused = await stage(4, "cleanup", "--identity", "/dev/null");
    expect([refused.code, refused.err]).toEqual([0, expect.stringContaining("the node is not used again")]);
    await expect.poll(() => yard.leases()).toEqual([]);
  });

  test.skipIf(requireTools("services of GitLab's jobs", "podman", "busybox"))(
    "services are containers beside the job, by their names, and end with it",
    async () => {
      const image = "localhost/nodeyard-test-service:1";
      const root = join(yard.site.folder, "root");
      mkdirSync(join(root, "bin"), { recursive: true });
      copyFileSync("/usr/bin/busybox", join(root, "bin/busybox"));
      execFileSync("sh", ["-c", `tar -C ${root} -c . | podman import - ${image}`], { stdio: "ignore" });
      const port = await freePort();
      const service = {
        ...{ name: image, alias: "nodeyard-test-service", entrypoint: ["/bin/busybox", "sh", "-c"] },
        command: [`while :; do echo "$WORD" | /bin/busybox nc -l -p ${port}; done`],
        variables: { WORD: "it's me" },
      };
      const services = { CUSTOM_ENV_CI_JOB_SERVICES: JSON.stringify([service]) };
      const prepared = await start(5, ["prepare", ...login()], services).ended;
      expect([prepared.code, prepared.err]).toEqual([0, expect.any(String)]);
      const ask = `until exec 3<>/dev/tcp/nodeyard-test-service/${port}; do sleep 0.2; done 2>/dev/null; read line <&3; echo "$line"`;
      const ran = await start(5, ["run", ...login(), script(ask), "build_script"], services).ended;
      expect([ran.code, ran.out]).toEqual([0, "it's me\n"]);
      expect((await start(5, ["cleanup", ...login()], services).ended).code).toBe(0);
      const left = ["ps", "--all", "--quiet", "--filter", "label=nodeyard=gitlab-5"];
      expect(execFileSync("podman", left, { encoding: "utf8" })).toBe("");
      expect(readFileSync("/etc/hosts", "utf8")).not.toContain("nodeyard-test-service");
      const broken = {
        CUSTOM_ENV_CI_JOB_SERVICES: JSON.stringify([{ name: "localhost/nodeyard-no-such:1" }]),
      };
      const failed = await start(6, ["prepare", ...login()], broken).ended;
      expect([failed.code, failed.err]).toEqual([
        SYSTEM_FAILURE,
        expect.stringContaining("cannot start the services"),
      ]);
      await start(6, ["cleanup", ...login()], broken).ended;
      execFileSync("podman", ["rmi", "--force", image], { stdio: "ignore" });
    },
  );

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
      expect.stringContaining("CUSTOM_ENV_CI_JOB_ID are not set"),
    ]);
  });
});
