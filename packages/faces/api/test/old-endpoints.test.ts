import {
  changeImageBuild,
  changeImageUpload,
  encodeImageBuild,
  encodeImageUpload,
  newImageBuild,
  newImageUpload,
  paths,
} from "@nodeyard/model";
import { ensurePath } from "@nodeyard/tree";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../../pool/launcher/test/rig.ts";
import { type ApiRig, ask, askJson, JSON_WANTED, startApi } from "./rig.ts";

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const LISTS = [
  "/image-list",
  "/dib-image-list",
  "/image-status",
  "/node-list",
  "/request-list",
  "/label-list",
];

let site: ApiRig;
let url: string;
let nodeId: string;

beforeAll(async () => {
  site = await startApi();
  url = site.url;
  const { rig } = site;
  const request = await rig.ask({ node_types: ["small"] });
  await until("the node is ready", async () => (await rig.request(request))?.state === "fulfilled");
  const [node] = await rig.nodes();
  nodeId = node!.id;
  const found = await rig.tree.get(paths.node(nodeId));
  const secret = {
    comment: "kept for Ada",
    user_data: { password: "hunter2" },
    driver_data: { token: "abc" },
  };
  const record = { ...JSON.parse(Buffer.from(found.data).toString()), ...secret };
  await rig.tree.set(paths.node(nodeId), Buffer.from(JSON.stringify(record)));
  await writeImages();
  await rig.launcher.view.resync();
});
afterAll(() => site[Symbol.asyncDispose]());

async function writeImages(): Promise<void> {
  const { tree } = site.rig;
  await ensurePath(tree, paths.imageUploads("noble", "b1", "cloud"));
  const build = newImageBuild(
    "b1",
    { builder: "host", builderId: "uuid", formats: ["qcow2", "raw"] },
    1_700_000_000,
  );
  await tree.set(
    paths.imageBuild("noble", "b1"),
    encodeImageBuild(changeImageBuild(build, { state: "ready" }, 1_700_000_000)),
  );
  const upload = newImageUpload({ username: "zuul", pythonPath: "auto", shellType: null }, 1_700_000_100.5);
  const ready = changeImageUpload(
    upload,
    { state: "ready", externalId: "img-1", externalName: "noble-1" },
    1_700_000_100.5,
  );
  for (const [id, record] of [
    ["0000000002", upload],
    ["0000000001", ready],
  ] as const)
    await tree.create(paths.imageUpload("noble", "b1", "cloud", id), encodeImageUpload(record));
  await tree.create(paths.imageRequest("noble"));
}

describe("what is answered (checks 20 to 24)", () => {
  test.each(LISTS)("a browser gets the table of %s as text", async (path) => {
    const { status, headers, text } = await ask(url, path, { headers: { accept: BROWSER } });
    expect(status).toBe(200);
    expect(headers["content-type"]).toBe("text/plain; charset=UTF-8");
    expect(text).toMatch(/^\+-[-+]*\+\n\| .* \|\n\+/);
    expect(Number(headers["content-length"])).toBe(Buffer.byteLength(text));
  });

  test.each(LISTS)("%s in JSON is an array, without a charset in its type", async (path) => {
    const { headers, text } = await ask(url, path, JSON_WANTED);
    expect(headers["content-type"]).toBe("application/json");
    expect(JSON.parse(text)).toBeInstanceOf(Array);
  });

  test("objects of image-list have exactly the old keys; age is the second of the change", async () => {
    expect(await askJson(url, "/image-list")).toEqual([
      {
        id: "b1",
        upload_id: "0000000001",
        provider: "cloud",
        image: "noble",
        external_name: "noble-1",
        external_id: "img-1",
        state: "ready",
        age: 1_700_000_100,
      },
      expect.objectContaining({ upload_id: "0000000002", state: "uploading", external_id: null }),
    ]);
    expect((await ask(url, "/image-list")).text).toMatch(/\| uploading \| \d+:\d\d:\d\d:\d\d \|/);
  });

  test("dib-image-list shows a pause and hides no state", async () => {
    const [build] = await askJson<object[]>(url, "/dib-image-list");
    expect(build).toEqual({
      id: "noble-b1",
      image: "noble",
      builder: "host",
      formats: ["qcow2", "raw"],
      state: "ready",
      age: 1_700_000_000,
      paused: false,
    });
    const { tree, launcher } = site.rig;
    await tree.create(paths.imagePause("noble"));
    await launcher.view.resync();
    await until("the pause is seen", async () =>
      (await ask(url, `/dib-image-list?fields=state,${Math.random()}`)).text.includes("| paused (ready) |"),
    );
    await tree.delete(paths.imagePause("noble"));
    await launcher.view.resync();
  });

  test("image-status has the request for a build with its time", async () => {
    const [status] = await askJson<Record<string, unknown>[]>(url, "/image-status");
    expect(status).toMatchObject({ image: "noble", paused: false, build_request: "pending" });
    expect(Object.keys(status!)).toEqual(["image", "paused", "build_request", "build_request_age"]);
    expect(Math.abs(Number(status!.build_request_age) - Date.now() / 1000)).toBeLessThan(600);
  });

  test("node-list has the 21 old keys; lists are arrays, the age is a duration", async () => {
    const [node] = await askJson<Record<string, unknown>[]>(url, "/node-list");
    expect(Object.keys(node!).join()).toBe(
      "id,provider,label,server_id,public_ipv4,ipv6,state,age,locked,pool,hostname,private_ipv4,AZ,username," +
        "connection_port,launcher,allocated_to,hold_job,comment,user_data,driver_data",
    );
    expect(node).toMatchObject({ id: nodeId, provider: "cloud", label: ["small"], connection_port: 22 });
    expect(node!.age).toMatch(/^\d\d:\d\d:\d\d:\d\d$/);
  });

  test("request-list and label-list", async () => {
    expect(await askJson(url, "/request-list")).toMatchObject([
      { node_types: ["small"], nodes: [nodeId], state: "fulfilled", declined_by: [], requestor: "test" },
    ]);
    expect(await askJson(url, "/label-list")).toEqual([{ label: "large" }, { label: "small" }]);
  });

  test("fields limits columns in their own order, in JSON too", async () => {
    const { text } = await ask(url, "/image-list?fields=state,id,nonsense");
    expect(text.split("\n")[1]).toMatch(/^\| Build ID +\| State +\|$/);
    const { text: json } = await ask(url, "/image-list?fields=state,id,nonsense", JSON_WANTED);
    expect(JSON.parse(json)[0]).toEqual({ id: "b1", state: "ready" });
    expect(Object.keys((await askJson<object[]>(url, "/image-list?fields="))[0]!)).toHaveLength(8);
  });

  test("node_id: one node, with its lock; an unknown one is an empty list", async () => {
    expect(await askJson(url, `/node-list?node_id=${nodeId}`)).toMatchObject([
      { id: nodeId, locked: "unlocked" },
    ]);
    expect(await askJson(url, "/node-list?node_id=9999999999")).toEqual([]);
    const { tree, launcher } = site.rig;
    const options = { ephemeral: true, sequential: true };
    const { path } = await tree.create(
      `${paths.nodeLock(nodeId)}/${"e".repeat(32)}__lock__`,
      undefined,
      options,
    );
    await launcher.view.resync();
    expect(await askJson(url, `/node-list?node_id=${nodeId}&fields=locked`)).toEqual([{ locked: "locked" }]);
    await tree.delete(path);
    await launcher.view.resync();
  });

  test.each(["/nope", "/node-list/", "//node-list", "/Node-List", "/api/v1/builds"])(
    "%s: 404",
    async (path) => {
      expect((await ask(url, path)).status).toBe(404);
    },
  );

  test("a 404 is JSON, HTML or text, as it is wanted", async () => {
    const { headers, text } = await ask(url, "/nope", JSON_WANTED);
    expect(headers["content-type"]).toBe("application/json");
    expect(JSON.parse(text)).toEqual({
      message: "The resource could not be found.",
      code: "404 Not Found",
      title: "Not Found",
    });
    expect((await ask(url, "/nope", { headers: { accept: BROWSER } })).text).toMatch(/^<html>/);
    expect((await ask(url, "/nope")).text).toMatch(/^404 Not Found\n/);
  });

  test.each(["POST", "PUT", "DELETE", "OPTIONS"])(
    "%s is answered as GET, whatever is sent along",
    async (method) => {
      const sent = {
        method,
        body: "{not json",
        headers: { "content-type": "application/json", "content-length": "9" },
      };
      const { status, text } = await ask(url, "/label-list", sent);
      expect([status, text.includes("| small |")]).toEqual([200, true]);
    },
  );

  test("HEAD has the headers and no body", async () => {
    const whole = await ask(url, "/label-list");
    const { status, headers, text } = await ask(url, "/label-list", { method: "HEAD" });
    expect([status, text]).toEqual([200, ""]);
    expect(headers["content-length"]).toBe(whole.headers["content-length"]);
  });
});

describe("headers (checks 25 to 27)", () => {
  test.each([...LISTS, "/ready", "/live"])("of %s", async (path) => {
    const { headers } = await ask(url, path);
    expect(headers["access-control-allow-origin"]).toBe("*");
    expect(headers["cache-control"]).toMatch(/public/);
    expect(headers["cache-control"]).toMatch(/max-age=1\b/);
    expect(Date.parse(headers.expires!) - Date.parse(headers["last-modified"]!)).toBe(1_000);
  });

  test("If-Modified-Since in the future: 304", async () => {
    const later = new Date(Date.now() + 86_400_000).toUTCString();
    const { status, text } = await ask(url, "/node-list", { headers: { "if-modified-since": later } });
    expect([status, text]).toEqual([304, ""]);
  });

  test("a range: the whole list", async () => {
    const whole = await ask(url, "/label-list");
    const { status, text } = await ask(url, "/label-list", { headers: { range: "bytes=2-9" } });
    expect([status, text]).toEqual([200, whole.text]);
  });
});

describe("what jobs and drivers wrote for themselves", () => {
  const secrets = async (headers: Readonly<Record<string, string>>) => {
    const path = `/node-list?node_id=${nodeId}&fields=comment,user_data,driver_data`;
    const { text } = await ask(url, path, { headers: { accept: "application/json", ...headers } });
    return (JSON.parse(text) as object[])[0];
  };

  test("is shown to a program on loopback", async () => {
    expect(await secrets({})).toMatchObject({ comment: "kept for Ada", user_data: { password: "hunter2" } });
  });

  test("is hidden from a page in a browser, and from clients behind a proxy", async () => {
    const hidden = { comment: "redacted", user_data: "redacted", driver_data: "redacted" };
    expect(await secrets({ origin: "https://evil.example" })).toEqual(hidden);
    expect(await secrets({ host: "evil.example" })).toEqual(hidden);
    expect(await secrets({ "x-forwarded-for": "192.0.2.1" })).toEqual(hidden);
  });

  test("hidden and shown answers are never mixed up by the cache", async () => {
    const asked = await Promise.all(
      Array.from({ length: 20 }, (_, at) => secrets(at % 2 === 0 ? {} : { origin: "https://evil.example" })),
    );
    for (const [at, answer] of asked.entries())
      expect(JSON.stringify(answer).includes("hunter2"), `answer ${at}`).toBe(at % 2 === 0);
  });
});
