// What the specification says about data tables.

export const tableIds = {
  'tables.insert.header.auth': 'header `auth` (JWT)',
  'tables.insert.header.Content-Type':
    'All request and response bodies are JSON (`Content-Type: application/json`)',
  'tables.insert.rule.write-access':
    'write access to the data table, granted to the app in the data definition',
  'tables.insert.path.tableName': '`tableName` (string, required)',
  'tables.insert.body.data': '`{data: {<column_name>: <value>, ...}}`',
  'tables.insert.response.row': 'the stored row: column name to value pairs supplied by the caller',
  'tables.insert.response.Created_On': 'system column, timestamp',
  'tables.insert.response.Updated_On': 'system column, timestamp',
  'tables.insert.response.Created_By': 'system column, identifier',
  'tables.insert.response.Updated_By': 'system column, identifier',
  'tables.insert.response.sys_Id': 'system column, format `sys-<uuid>`',
  'tables.insert.response._id': 'system column, string',
} as const;
