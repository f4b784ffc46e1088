import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "./pieces.tsx";

interface Props {
  readonly title: string;
  /** Text of the button for the action. */
  readonly verb: string;
  readonly danger?: boolean;
  readonly children?: ComponentChildren;
  /** A rejection is shown in the dialog, which stays open. */
  readonly action: (fields: FormData) => Promise<unknown>;
}

/** A button that opens a dialog with fields and an action. */
export function Action({ title, verb, danger = false, children, action }: Props) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" class={danger ? "danger" : ""} onClick={() => setOpen(true)}>
        {verb}
      </button>
      {open && (
        <Dialog title={title} verb={verb} danger={danger} action={action} onClose={() => setOpen(false)}>
          {children}
        </Dialog>
      )}
    </>
  );
}

function Dialog({
  title,
  verb,
  danger,
  children,
  action,
  onClose,
}: Props & { readonly onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  useEffect(() => dialog.current?.showModal(), []);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await action(new FormData(event.currentTarget as HTMLFormElement));
      onClose();
    } catch (reason) {
      setError(reason);
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} aria-label={title} onClose={onClose}>
      <form onSubmit={submit}>
        <h2>{title}</h2>
        {children}
        <Problem error={error} />
        <footer>
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class={danger ? "danger" : "primary"} disabled={busy}>
            {verb}
          </button>
        </footer>
      </form>
    </dialog>
  );
}

/** A choice of durations; the value is in seconds. 0: a hold without an end of its own. */
export function Duration({
  name,
  label,
  hours,
}: {
  readonly name: string;
  readonly label: string;
  readonly hours: readonly number[];
}) {
  return (
    <label>
      {label}
      <select name={name}>
        {hours.map((hour) => (
          <option key={hour} value={hour * 3_600}>
            {hour === 0
              ? "until it is released, at most max-hold-age"
              : hour < 24
                ? `${hour} ${hour === 1 ? "hour" : "hours"}`
                : `${hour / 24} ${hour === 24 ? "day" : "days"}`}
          </option>
        ))}
      </select>
    </label>
  );
}
