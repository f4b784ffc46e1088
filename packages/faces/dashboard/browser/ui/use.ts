import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly loading: boolean;
  readonly reload: () => void;
}

/** The result of a call, loaded again when `key` changes. An older answer never replaces a newer one. */
export function useLoad<T>(key: string, load: () => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: unknown; loading: boolean }>({
    key,
    loading: true,
  });
  const last = useRef(0);
  const reload = useCallback(() => {
    const mine = ++last.current;
    const isLast = () => mine === last.current;
    setState((now) => ({ ...(now.key === key ? now : { key }), loading: true }));
    load().then(
      (data) => isLast() && setState({ key, data, loading: false }),
      (error: unknown) =>
        isLast() &&
        setState((now) => ({ ...(now.key === key && { data: now.data as T }), key, error, loading: false })),
    );
  }, [key]);
  useEffect(() => {
    reload();
    return () => void last.current++;
  }, [reload]);
  const known = state.key === key ? state : undefined;
  return { data: known?.data, error: known?.error, loading: known?.loading ?? true, reload };
}

/** Calls `action` `waitMs` milliseconds after `value` changed. Several changes within that time cause one call. */
export function useChange(value: unknown, waitMs: number, action: () => void): void {
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    const timer = setTimeout(action, waitMs);
    return () => clearTimeout(timer);
  }, [value]);
}

/** Whether a key press is input for a field or dialog, and not a shortcut of the page. */
export function isTyping({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey) return true;
  return (
    target instanceof Element && target.closest("input, textarea, select, dialog, [contenteditable]") !== null
  );
}
