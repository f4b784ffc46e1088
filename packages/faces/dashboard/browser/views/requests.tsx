import { msOf } from "../data/format.ts";
import { hrefOf } from "../data/route.ts";
import type { RequestRow } from "../data/rows.ts";
import { row } from "../data/state.ts";
import { Labels, Prose } from "../ui/facts.tsx";
import { ListPage } from "../ui/list-page.tsx";
import { Age, Link, State } from "../ui/pieces.tsx";
import { Story } from "../ui/story.tsx";
import type { Column } from "../ui/virtual-list.tsx";

const COLUMNS: readonly Column<RequestRow>[] = [
  { key: "id", title: "Request", value: ({ id }) => id, cell: ({ id }) => <Link view="requests" id={id} /> },
  { key: "state", title: "State", value: ({ state }) => state, cell: ({ state }) => <State state={state} /> },
  {
    key: "created",
    title: "Age",
    value: ({ created, since }) => -(msOf(created ?? since) || 0),
    cell: ({ created, since }) => <Age at={created ?? since} />,
  },
  {
    key: "labels",
    title: "Labels",
    value: ({ labels }) => labels.join(),
    cell: ({ labels }) => <Labels labels={labels} />,
  },
  {
    key: "requestor",
    title: "Requestor",
    wide: true,
    value: ({ requestor }) => requestor ?? "",
    cell: ({ requestor }) => <Prose text={requestor ?? ""} />,
  },
  {
    key: "tenant",
    title: "Tenant",
    wide: true,
    value: ({ tenant }) => tenant ?? "",
    cell: ({ tenant }) => tenant ?? "",
  },
  {
    key: "declined",
    title: "Declined by",
    wide: true,
    value: ({ declined_by }) => -declined_by.length,
    cell: ({ declined_by }) =>
      declined_by.length === 0 ? "" : `${declined_by.length} ${declined_by.length === 1 ? "pool" : "pools"}`,
  },
];

export function RequestsView({ id }: { readonly id: string | undefined }) {
  if (id !== undefined) return <RequestView id={id} />;
  return (
    <ListPage
      title="Requests"
      kind="request"
      columns={COLUMNS}
      states={["requested", "pending", "fulfilled", "failed"]}
      sort="id"
      source={
        <>
          No request is open. A CI makes one for each job, a person with <code>nodeyard request LABEL</code>{" "}
          or under <a href={hrefOf("leases")}>Leases</a>.
        </>
      }
    />
  );
}

function RequestView({ id }: { readonly id: string }) {
  const request = row("request", id);
  return (
    <>
      <header>
        <h1>Request {id}</h1>
      </header>
      <Story
        kind="request"
        id={id}
        facts={
          request && {
            labels: <Labels labels={request.labels} />,
            nodes: request.nodes,
            requestor: request.lease == null && request.requestor,
            lease: request.lease,
            tenant: request.tenant,
            relative_priority: request.relative_priority || null,
            declined_by: request.declined_by,
          }
        }
      />
    </>
  );
}
