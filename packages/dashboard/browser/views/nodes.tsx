import { call, mayLease, mayOperate } from "../data/api.ts";
import { knownHosts, msOf, sshLine } from "../data/format.ts";
import { hrefOf } from "../data/route.ts";
import type { NodeRow } from "../data/rows.ts";
import { row } from "../data/state.ts";
import { Action, Duration } from "../ui/dialog.tsx";
import { ListPage } from "../ui/list-page.tsx";
import { NodeConsole } from "../ui/node-console.tsx";
import { Age, Copy, Facts, Link, Section, State } from "../ui/pieces.tsx";
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
    cell: ({ label }) => label.join(", "),
  },
  {
    key: "provider",
    title: "Provider",
    wide: true,
    value: ({ provider }) => provider ?? "",
    cell: ({ provider, pool }) => [provider, pool].filter(Boolean).join(" / "),
  },
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
      texts={(node) => [
        ...[node.id, node.provider, node.pool, node.tenant, node.comment, node.allocated_to, node.hostname],
        ...[node.interface_ip, node.public_ipv4, node.private_ipv4, node.ipv6, node.hold_job, ...node.label],
      ]}
    />
  );
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
      {node === undefined ? (
        <p class="dim">There is no such node now; this is what is known of it.</p>
      ) : (
        <Record node={node} />
      )}
      {node !== undefined && mayLease() && (
        <Section title="Console">
          <NodeConsole id={id} key={id} />
        </Section>
      )}
      <Story kind="node" id={id} about={node === undefined} />
    </>
  );
}

function Actions({ node: { id, state } }: { readonly node: NodeRow }) {
  const path = `/v1/nodes/${id}`;
  const canHold = state === "ready" || state === "in-use" || state === "used";
  return (
    <div class="actions">
      {canHold && (
        <Action
          title={`Hold node ${id}`}
          verb="Hold"
          action={(fields) =>
            call("POST", `${path}/hold`, { why: fields.get("why"), for_seconds: Number(fields.get("for")) })
          }
        >
          <p>Nobody else gets the node until the hold ends.</p>
          <label>
            Why
            <input name="why" required maxLength={1_000} />
          </label>
          <Duration name="for" label="For" hours={[8, 1, 24, 72, 168]} />
        </Action>
      )}
      {state === "hold" && (
        <Action title={`Release node ${id}`} verb="Release" action={() => call("POST", `${path}/release`)}>
          <p>The hold ends. The node is deleted, or offered again if it is a static host.</p>
        </Action>
      )}
      {state !== "deleting" && (
        <Action title={`Delete node ${id}`} verb="Delete" danger action={() => call("DELETE", path)}>
          <p>A launcher deletes the machine. Its present user loses it.</p>
        </Action>
      )}
    </div>
  );
}

function Record({ node }: { readonly node: NodeRow }) {
  const address = addressOf(node);
  const ssh = sshLine(address, node.connection_port, node.username, node.connection_type);
  const keys = address === undefined ? "" : knownHosts(address, node.connection_port, node.host_keys);
  return (
    <>
      <Section title="Node">
        <Facts
          facts={{
            state: <State state={node.state} />,
            since: <Age at={node.since} />,
            label: node.label,
            provider: [node.provider, node.pool, node.az].filter(Boolean).join(" / "),
            request: node.allocated_to && <Link view="requests" id={node.allocated_to} />,
            tenant: node.tenant,
            host: node.hostname,
            machine: node.server_id,
            address,
            launcher: node.launcher,
            locked: node.locked,
            comment: node.comment,
            hold_job: node.hold_job,
            backing_node: node.backing_node && (
              <a href={hrefOf("nodes", node.backing_node)}>{node.backing_node}</a>
            ),
            not_deleted: node.dead_letter ? "its deletion failed too often: a person has to look" : null,
          }}
        />
        {ssh !== undefined && <Copy text={ssh} what="the SSH command" />}
      </Section>
      {keys !== "" && (
        <Section title="Host keys">
          <Copy text={keys} what="the lines for known_hosts" />
        </Section>
      )}
    </>
  );
}
