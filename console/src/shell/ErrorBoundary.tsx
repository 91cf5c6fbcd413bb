import { Component, type ReactNode } from "react";
import { ErrorNote } from "@/components/ErrorNote";

/** Keeps an error of one screen from taking the page with it. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <>
        <div className="head">
          <h1>This screen has failed</h1>
        </div>
        <main>
          <ErrorNote error={this.state.error} onRetry={() => this.setState({ error: null })} />
        </main>
      </>
    );
  }
}
