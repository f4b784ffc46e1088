import { labelsText, msOf } from "../data/format.ts";
import type { RequestRow } from "../data/rows.ts";
import { row } from "../data/state.ts";
import { ListPage } from "../ui/list-page.tsx";
import { Age, Facts, Link, Section, State } from "../ui/pieces.tsx";
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
    cell: ({ labels }) => labelsText(labels),
  },
  {
    key: "requestor",
    title: "Requestor",
    wide: true,
    value: ({ requestor }) => requestor ?? "",
    cell: ({ requestor }) => requestor ?? "",
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
    cell: ({ declined_by }) => (declined_by.length === 0 ? "" : `${declined_by.length} pools`),
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
      texts={({ id: own, requestor, tenant, labels }) => [own, requestor, tenant, ...labels]}
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
      {request === undefined ? (
        <p class="dim">It is answered, or there is none; this is what is known of it.</p>
      ) : (
        <Section title="Request">
          <Facts
            facts={{
              state: <State state={request.state} />,
              age: <Age at={request.created ?? request.since} />,
              labels: labelsText(request.labels),
              nodes: request.nodes.length > 0 && (
                <span class="ids">
                  {request.nodes.map((node) => (
                    <Link key={node} view="nodes" id={node} />
                  ))}
                </span>
              ),
              requestor: request.requestor,
              lease: request.lease && <Link view="leases" id={request.lease} />,
              tenant: request.tenant,
              relative_priority: request.relative_priority,
              declined_by: request.declined_by,
            }}
          />
        </Section>
      )}
      <Story kind="request" id={id} about={request === undefined} />
    </>
  );
}
