import { call, mayLease, mayOperate } from "../data/api.ts";
import { knownHosts, msOf, sshLine } from "../data/format.ts";
import { hrefOf } from "../data/route.ts";
import type { NodeRow } from "../data/rows.ts";
import { leaseOf, row, rows } from "../data/state.ts";
import { Action, Duration } from "../ui/dialog.tsx";
import { Labels } from "../ui/facts.tsx";
import { ListPage } from "../ui/list-page.tsx";
import { NodeConsole } from "../ui/node-console.tsx";
import { Age, Copy, Job, Link, State } from "../ui/pieces.tsx";
import { Story } from "../ui/story.tsx";
import type { Column } from "../ui/virtual-list.tsx";

const STATES = "building testing ready in-use used hold init deleting failed aborted".split(" ");

const COLUMNS: readonly Column<NodeRow>[] = [
  { key: "id", title: "Node", value: ({ id }) => id, cell: ({ id }) => <Link view="nodes" id={id} /> },
  { key: "state", title: "State", value: ({ state }) => state, cell: ({ state }) => <State state={state} /> },
  {
    key: "since",
    title: "For",
    value: ({ since }) => -(msOf(since) || 0),
    cell: ({ since }) => <Age at={since} />,
  },
  {
    key: "label",
    title: "Label",
    value: ({ label }) => label.join(),
    cell: ({ label }) => <Labels labels={label} />,
  },
  {
    key: "provider",
    title: "Provider",
    wide: true,
    value: ({ provider }) => provider ?? "",
    cell: (node) => <Place node={node} />,
  },
  { key: "job", title: "Job", wide: true, cell: (node) => <Job job={jobOf(node)} /> },
  { key: "address", title: "Address", wide: true, cell: (node) => addressOf(node) ?? "" },
  {
    key: "tenant",
    title: "Tenant",
    wide: true,
    value: ({ tenant }) => tenant ?? "",
    cell: ({ tenant }) => tenant ?? "",
  },
  { key: "comment", title: "Comment", wide: true, cell: ({ comment }) => comment ?? "" },
];

export function NodesView({ id }: { readonly id: string | undefined }) {
  if (id !== undefined) return <NodeView id={id} />;
  return (
    <ListPage
      title="Nodes"
      kind="node"
      columns={COLUMNS}
      states={STATES}
      sort="id"
      source={
        <>
          There are no nodes. Requests make them, and <code>min-ready</code> of a label keeps some.
        </>
      }
    />
  );
}

/** The job of a CI that has the node, by the lease that holds it. */
function jobOf({ id }: NodeRow) {
  return leaseOf(id)?.job ?? null;
}

function addressOf({ interface_ip, public_ipv4, ipv6, private_ipv4 }: NodeRow): string | undefined {
  return interface_ip ?? public_ipv4 ?? ipv6 ?? private_ipv4 ?? undefined;
}

function NodeView({ id }: { readonly id: string }) {
  const node = row("node", id);
  return (
    <>
      <header>
        <h1>Node {id}</h1>
        {node !== undefined && mayOperate() && <Actions node={node} />}
      </header>
      <Story kind="node" id={id} facts={node && factsOf(node)}>
        {node !== undefined && <LogIn node={node} />}
        {node !== undefined && mayLease() && <NodeConsole id={id} key={id} />}
      </Story>
    </>
  );
}

/** "east / main / az1", with a link to the provider. */
function Place({
  node: { provider, pool, az },
  whole = false,
}: {
  readonly node: NodeRow;
  readonly whole?: boolean;
}) {
  if (provider == null) return null;
  const rest = [pool, whole && az].filter(Boolean).map((part) => ` / ${part}`);
  return (
    <>
      <a href={hrefOf("providers", provider)}>{provider}</a>
      {rest.join("")}
    </>
  );
}

function factsOf(node: NodeRow): Readonly<Record<string, unknown>> {
  return {
    label: node.label,
    provider: <Place node={node} whole />,
    request: node.allocated_to,
    job: jobOf(node) && <Job job={jobOf(node)} />,
    tenant: node.tenant,
    host: node.hostname,
    address: addressOf(node),
    comment: node.comment,
    hold_job: node.hold_job,
    backing_node: node.backing_node,
    not_deleted: node.dead_letter && "its deletion failed too often: a person has to look",
  };
}

function Actions({ node: { id, state, provider, allocated_to } }: { readonly node: NodeRow }) {
  const path = `/v1/nodes/${id}`;
  // Only static providers have hosts.
  const isHost = rows("standing").some((one) => one.kind === "host" && one.provider === provider);
  const isFree = state === "ready" && allocated_to == null;
  const canHold = state === "ready" || state === "in-use" || state === "used";
  return (
    <div class="actions">
      {canHold && (
        <Action
          title={`Hold node ${id}`}
          verb="Hold"
          action={(fields) =>
            call("POST", `${path}/hold`, {
              why: fields.get("why"),
              ...(fields.get("for") !== "0" && { for_seconds: Number(fields.get("for")) }),
            })
          }
        >
          <p>Nobody else gets the node until the hold ends.</p>
          <label>
            Why
            <input name="why" required maxLength={1_000} />
          </label>
          <Duration name="for" label="For" hours={[8, 1, 24, 72, 168, 0]} />
        </Action>
      )}
      {state === "hold" && (
        <Action title={`Release node ${id}`} verb="Release" action={() => call("POST", `${path}/release`)}>
          <p>The hold ends. {isHost ? "The host is offered again." : "The machine is deleted."}</p>
        </Action>
      )}
      {state !== "deleting" && (
        <Action title={`Delete node ${id}`} verb="Delete" danger action={() => call("DELETE", path)}>
          <p>
            {isFree ? "Nobody uses it. " : "Its present user loses it. "}
            {isHost
              ? "The host stays: only its record is deleted, and it is offered again when it answers."
              : "A launcher deletes the machine."}
          </p>
        </Action>
      )}
    </div>
  );
}

function LogIn({ node }: { readonly node: NodeRow }) {
  const address = addressOf(node);
  const ssh = sshLine(address, node.connection_port, node.username, node.connection_type);
  const keys = address === undefined ? "" : knownHosts(address, node.connection_port, node.host_keys);
  return (
    <>
      {ssh !== undefined && <Copy text={ssh} what="the SSH command" />}
      {keys !== "" && (
        <details>
          <summary>Host keys</summary>
          <Copy text={keys} what="the lines for known_hosts" />
        </details>
      )}
    </>
  );
}
