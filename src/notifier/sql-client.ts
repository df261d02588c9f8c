// The part of a database connection that the notifier uses: statements that are prepared by name.

export type SqlClient = {
  query<Row extends object>(statement: {
    readonly name: string;
    readonly text: string;
    readonly values: unknown[];
  }): Promise<{ readonly rows: Row[]; readonly rowCount: number | null }>;
};
