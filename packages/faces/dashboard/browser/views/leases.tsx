import type { NodeAccess } from "@nodeyard/client";
import { useState } from "preact/hooks";
import { call, list, mayLease, session } from "../data/api.ts";
import { knownHosts, msOf, sshLine } from "../data/format.ts";
import { address, go, hrefOf, refine } from "../data/route.ts";
import type { LeaseRow } from "../data/rows.ts";
import { row } from "../data/state.ts";
import { Action, Duration } from "../ui/dialog.tsx";
import { Labels } from "../ui/facts.tsx";
import { ListPage } from "../ui/list-page.tsx";
import { Age, Copy, Job, Link, Owner, Problem, State, When } from "../ui/pieces.tsx";
import { Story } from "../ui/story.tsx";
import { useChange, useLoad } from "../ui/use.ts";
import type { Column } from "../ui/virtual-list.tsx";

const COLUMNS: readonly Column<LeaseRow>[] = [
  { key: "id", title: "Lease", value: ({ id }) => id, cell: ({ id }) => <Link view="leases" id={id} /> },
  { key: "state", title: "State", value: ({ state }) => state, cell: ({ state }) => <State state={state} /> },
  {
    key: "until",
    title: "Ends in",
    value: ({ until }) => msOf(until) || 0,
    cell: ({ until, state }) => (state === "released" ? "" : <Age at={until} ahead />),
  },
  {
    key: "labels",
    title: "Labels",
    value: ({ labels }) => labels.join(),
    cell: ({ labels }) => <Labels labels={labels} />,
  },
  {
    key: "owner",
    title: "Owner",
    wide: true,
    value: ({ owner }) => owner,
    cell: ({ owner }) => <Owner owner={owner} />,
  },
  {
    key: "job",
    title: "Job",
    wide: true,
    value: ({ job }) => job?.id ?? "",
    cell: ({ job }) => <Job job={job} />,
  },
  {
    key: "tenant",
    title: "Tenant",
    wide: true,
    value: ({ tenant }) => tenant ?? "",
    cell: ({ tenant }) => tenant ?? "",
  },
];

export function LeasesView({ id }: { readonly id: string | undefined }) {
  if (id !== undefined) return <LeaseView id={id} />;
  const me = session.value?.name ?? "";
  const isMine = address.value.query.get("q") === me;
  return (
    <ListPage
      title="Leases"
      kind="lease"
      columns={COLUMNS}
      states={["waiting", "gathering", "granted", "failed", "released"]}
      sort="-until"
      source="Nobody holds nodes by a lease. “Request nodes” or “nodeyard request LABEL” makes one; a CI by ZooKeeper, such as Zuul, needs none."
    >
      <button type="button" aria-pressed={isMine} onClick={() => refine({ q: isMine ? "" : me })}>
        Mine
      </button>
      {mayLease() && <Create />}
    </ListPage>
  );
}

interface Label {
  readonly label: string;
}

function Create() {
  const { data: labels, error } = useLoad("labels", () => list<Label>("/v1/labels?fields=label"));
  // By what is asked for. No hash of it: browsers have `crypto.subtle` on TLS and loopback only.
  const [keys] = useState(() => new Map<string, string>());
  const tenants = session.value?.tenants.filter((tenant) => tenant !== "*") ?? [];
  const create = async (fields: FormData) => {
    const wanted = Array.from({ length: Number(fields.get("count")) }, () => String(fields.get("label")));
    const tenant = fields.get("tenant");
    const body = {
      labels: wanted,
      for_seconds: Number(fields.get("for")),
      ...(tenant !== null && tenant !== "" && { tenant }),
    };
    // The key makes a repetition safe: a second click, or a retry after a lost reply, gets the same lease.
    const text = JSON.stringify(body);
    const key = keys.get(text) ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
    keys.set(text, key);
    const lease = await call<LeaseRow>("POST", "/v1/leases", body, { "idempotency-key": key });
    go(hrefOf("leases", lease.id));
  };
  return (
    <Action title="Request nodes" verb="Request nodes" action={create}>
      <Problem error={error} />
      <label>
        Label
        <select name="label" required>
          {labels?.map(({ label }) => (
            <option key={label}>{label}</option>
          ))}
        </select>
      </label>
      <label>
        How many
        <input name="count" type="number" min={1} max={100} value={1} required />
      </label>
      {tenants.length > 0 && (
        <label>
          Tenant
          <select name="tenant">
            {tenants.map((tenant) => (
              <option key={tenant}>{tenant}</option>
            ))}
          </select>
        </label>
      )}
      <Duration name="for" label="For, waiting included" hours={[1, 2, 4, 8, 24, 72]} />
    </Action>
  );
}

function LeaseView({ id }: { readonly id: string }) {
  const lease = row("lease", id);
  return (
    <>
      <header>
        <h1>Lease {id}</h1>
        {lease !== undefined && isOpen(lease) && mayLease() && <Actions lease={lease} />}
      </header>
      <Story
        kind="lease"
        id={id}
        facts={
          lease && {
            labels: <Labels labels={lease.labels} />,
            ends: isOpen(lease) && <When at={lease.until} />,
            heartbeat: lease.heartbeat_seconds != null && `every ${lease.heartbeat_seconds} s, or it ends`,
            owner: <Owner owner={lease.owner} />,
            job: lease.job && <Job job={lease.job} />,
            tenant: lease.tenant,
            request: lease.request,
            parts: lease.parts?.map(({ label, state }) => `${label}: ${state}`).join(", "),
            verdict: lease.verdict,
          }
        }
      >
        {lease !== undefined && lease.nodes.length > 0 && <Nodes lease={lease} />}
      </Story>
    </>
  );
}

function isOpen({ state }: LeaseRow): boolean {
  return state === "waiting" || state === "gathering" || state === "granted";
}

function Nodes({ lease: { id, nodes } }: { readonly lease: LeaseRow }) {
  const path = `/v1/leases/${id}/nodes`;
  const { data, error, reload } = useLoad(
    path,
    async () => (await call<{ items: readonly NodeAccess[] }>("GET", path)).items,
  );
  useChange(nodes.join(), 200, reload);
  return (
    <>
      <Problem error={error} />
      <ul class="cards" aria-label="Log in">
        {data?.map((node) => {
          const {
            interface_ip: address,
            connection_port: port,
            username,
            connection_type: type,
            host_keys: keys,
          } = node;
          const ssh = sshLine(address, port, username, type);
          return (
            <li key={node.id}>
              <h3>
                <Link view="nodes" id={node.id} /> <Labels labels={node.label} />
              </h3>
              {ssh === undefined ? (
                <p class="dim">Not reached by SSH: {[type, address, port].filter(Boolean).join(" ")}</p>
              ) : (
                <Copy text={ssh} what={`the SSH command of node ${node.id}`} />
              )}
              {address !== null && keys.length > 0 && (
                <details>
                  <summary>Host keys</summary>
                  <Copy
                    text={knownHosts(address, port, keys)}
                    what={`the lines for known_hosts of node ${node.id}`}
                  />
                </details>
              )}
            </li>
          );
        })}
      </ul>
    </>
  );
}

function Actions({ lease: { id, state } }: { readonly lease: LeaseRow }) {
  const path = `/v1/leases/${id}`;
  return (
    <div class="actions">
      <Action
        title={`Extend lease ${id}`}
        verb="Extend"
        action={(fields) => call("POST", `${path}/extend`, { for_seconds: Number(fields.get("for")) })}
      >
        <Duration name="for" label="Keep the nodes from now for" hours={[1, 2, 4, 8, 24, 72]} />
      </Action>
      <Action
        title={`Release lease ${id}`}
        verb="Release"
        danger
        action={(fields) =>
          call("POST", `${path}/release`, {
            verdict: fields.get("verdict"),
            ...(fields.get("why") && { why: fields.get("why") }),
          })
        }
      >
        {state === "granted" && (
          <label>
            How were the nodes?
            <select name="verdict">
              <option value="ok">ok: as they should be</option>
              <option value="dirty">dirty: not to be used again</option>
              <option value="infra-failure">infra-failure: the machine was at fault</option>
            </select>
          </label>
        )}
        {state === "waiting" && <input type="hidden" name="verdict" value="ok" />}
        <label>
          Why
          <input name="why" maxLength={1_000} placeholder="for the audit, if there is something to say" />
        </label>
      </Action>
    </div>
  );
}
