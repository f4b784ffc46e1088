import { type HttpAnswer, type HttpRequest, RateLimiter } from "@nodeyard/driver";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { apiOf } from "../../src/api/index.ts";
import { Service, Session } from "../../src/client/index.ts";
import { Lookups } from "../../src/lookups/lookups.ts";

const { signal } = new AbortController();

/** A neutron that gives these answers by the path and query they are asked for with. */
function neutron(answers: Readonly<Record<string, object>>) {
  const clock = new VirtualClock();
  const send = async ({ url }: HttpRequest): Promise<HttpAnswer> => {
    if (url.endsWith("/auth/tokens")) {
      const life = { issued_at: "2026-01-01T00:00:00Z", expires_at: "2026-01-01T01:00:00Z" };
      const text = JSON.stringify({ token: { ...life, catalog: [], project: { id: "ours" } } });
      return { status: 201, headers: { "x-subject-token": "t" }, text };
    }
    const answer = answers[url.replace("http://neutron/v2.0", "")];
    if (answer === undefined) throw new Error(`unexpected call ${url}`);
    return { status: 200, headers: {}, text: JSON.stringify(answer) };
  };
  const credential = () => ({ authUrl: "http://cloud", type: null, values: { token: "t", project_id: "p" } });
  const limiter = new RateLimiter({ clock, intervalMs: 0 });
  const session = new Session({ credential, limiter, send, clock, random: seededRandom(1) });
  const overrides = { network: "http://neutron" };
  const place = { region: null, interfaces: ["public"], overrides, microversions: {} };
  const api = apiOf((name) => new Service(name, session, place, clock));
  return { ports: api.ports, lookups: new Lookups(clock, api) };
}

const port = (id: string) => ({ id, status: "DOWN", network_id: "n" });

test("a list that neutron cuts into pages is read to its end", async () => {
  const next = (href: string) => [{ rel: "next", href }];
  const cloud = neutron({
    "/ports?project_id=ours": {
      ports: [port("1"), port("2")],
      ports_links: next("http://inside:9696/v2.0/ports?project_id=ours&marker=2"),
    },
    "/ports?project_id=ours&marker=2": {
      ports: [port("3")],
      ports_links: [{ rel: "previous", href: "http://inside/v2.0/ports?marker=3&page_reverse=True" }],
    },
  });
  expect((await cloud.ports.own(signal)).map(({ id }) => id)).toEqual(["1", "2", "3"]);
});

test("an administrator is not offered the networks of other projects", async () => {
  const networks = [
    { id: "1", name: "private", project_id: "ours" },
    { id: "2", name: "private", project_id: "theirs" },
    { id: "3", name: "lent", project_id: "theirs", shared: true },
    { id: "4", name: "public", project_id: "theirs", "router:external": true },
    { id: "5", name: "old" },
  ];
  const seen = await neutron({ "/networks": { networks } }).lookups.networks(signal);
  expect(seen.map(({ id }) => id)).toEqual(["1", "3", "4", "5"]);
});
