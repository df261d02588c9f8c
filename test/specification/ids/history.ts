// What the specification says about the conversation history. The history has four forms, namely
// GET and POST, each as v1 and v2. The ids under `history.messages` apply to all of them.

export const historyIds = {
  'history.v1-get.rule.path': 'v1 GET `/api/public/bot/{botId}/getMessages`',
  'history.v2-get.rule.path': 'v2 GET `/api/public/bot/{botId}/getMessagesV2`',
  'history.v1-post.rule.path': 'v1 POST `/api/public/bot/{botId}/getMessages`',
  'history.v2-post.rule.path': 'v2 POST `/api/public/bot/{botId}/getMessagesV2`',
  'history.admin-post.rule.path': 'v1 POST `/api/public/getMessages` for the admin console',
  'history.messages.header.auth': 'Headers: `auth` (JWT)',
  'history.messages.header.Content-Type': '`Content-Type: application/json`',
  'history.messages.header.accept-encoding':
    '`accept-encoding: gzip, deflate, br` is recommended for v2',
  'history.messages.rule.scope-app': 'App Builder: `Chat History`',
  'history.messages.rule.scope-admin': 'admin console: `Bot Analytics > Chat History`',
  'history.messages.rule.recent-first': 'Messages are returned most recent first by default',
  'history.messages.rule.utc': 'timestamps are UTC',
  'history.messages.path.botId':
    '`botId` in the path is marked optional (the admin-console path has none)',
  'history.messages.rule.v1-limit': 'Messages per request, history v1: at most 100',
  'history.messages.rule.v2-limit': 'Messages per request, history v2: up to 10,000',
  'history.messages.rule.span': 'Span between `dateTo` and `dateFrom`: less than 7 days',
  'history.messages.rule.trace-retention': 'Trace identifier retention: 30 days',
  'history.messages.rule.v1-tasks': 'History v1 includes messages of all tasks',
  'history.messages.rule.v2-tasks': 'v2 leaves out alert and action task messages',
  'history.get.query.userId': 'required for GET: user identifier (e-mail or enterprise unique id)',
  'history.get.query.skip': 'sessions to skip',
  'history.get.query.offset': 'sessions to skip',
  'history.get.query.limit': 'messages per page',
  'history.get.query.channelType': 'default `rtm`; 25 values',
  'history.get.query.dateFrom':
    '`yyyy-mm-dd` or `yyyy-mm-ddThh:mm:ss.msZ`; not combinable with `msgId`',
  'history.get.query.dateTo': 'same formats; not combinable with `msgId`',
  'history.get.query.getAgentsInfo': 'boolean, include agent info',
  'history.get.query.includeSecureForm':
    'boolean, required for v2: show form input submitted by the user',
  'history.get.query.sessionId': 'a specific session',
  'history.get.query.callId': 'a specific call (voice channels)',
  'history.v1-post.query.userId':
    'user identifier; query parameters, some also usable in the v1 call for voice calls',
  'history.v1-post.query.skip':
    'sessions to skip; query parameters, some also usable in the v1 call for voice calls',
  'history.v1-post.query.offset':
    'sessions to skip; query parameters, some also usable in the v1 call for voice calls',
  'history.v1-post.query.limit':
    'messages per page; query parameters, some also usable in the v1 call for voice calls',
  'history.v1-post.query.channelType':
    'default `rtm`; query parameters, some also usable in the v1 call for voice calls',
  'history.v1-post.query.dateFrom':
    '`yyyy-mm-dd` or `yyyy-mm-ddThh:mm:ss.msZ`; query parameters, some also usable in the v1 call for voice calls',
  'history.v1-post.query.dateTo':
    'same formats; query parameters, some also usable in the v1 call for voice calls',
  'history.v1-post.query.getAgentsInfo':
    'include agent info; query parameters, some also usable in the v1 call for voice calls',
  'history.v1-post.query.includeSecureForm':
    'show form input submitted by the user; query parameters, some also usable in the v1 call for voice calls',
  'history.v1-post.query.sessionId':
    'a specific session; query parameters, some also usable in the v1 call for voice calls',
  'history.v1-post.query.callId':
    'a specific call (voice channels); query parameters, some also usable in the v1 call for voice calls',
  'history.post.body.userId': 'user identifier, not required',
  'history.post.body.skip': 'sessions to skip',
  'history.post.body.offset': 'sessions to skip',
  'history.post.body.limit': 'messages per page',
  'history.post.body.forward': '`true` oldest first, `false` most recent first',
  'history.post.body.msgId': 'message to start from; not combinable with `dateFrom`/`dateTo`',
  'history.post.body.direction':
    'when `msgId` given: below 0 reverse, 0 both directions, above 0 forward',
  'history.post.body.includeTraceId': 'include the trace identifier',
  'history.post.body.sessionId': 'array of strings, specific sessions',
  'history.post.body.tags': 'object, meta tags filter',
  'history.post.body.getAgentsInfo': 'boolean, include agent info',
  'history.post.body.dateFrom': 'as above (used in the v1 POST request shape)',
  'history.post.body.dateTo': 'as above (used in the v1 POST request shape)',
  'history.post.body.channelType': 'as above (used in the v1 POST request shape)',
  'history.messages.response.total': 'number of records matching',
  'history.messages.response.moreAvailable': 'boolean',
  'history.messages.response.icon': 'URL of bot logo',
  'history.messages.response.messages': '`messages` (array)',
  'history.messages.response._id': 'format `ms-<uuid>`',
  'history.messages.response.botId': 'botId, string',
  'history.messages.response.traceId':
    'on incoming messages, included only when requested; retained 30 days',
  'history.messages.response.type': '`incoming` (user input) or `outgoing` (bot response)',
  'history.messages.response.status': '`received`, `queued`, `in progress`, `delivered`, `pending`',
  'history.messages.response.createdBy': 'user identifier of the end user',
  'history.messages.response.createdOn': 'timestamp',
  'history.messages.response.channels': 'array of objects',
  'history.messages.response.channels.type': 'channel name, default `rtm`',
  'history.messages.response.channels.channelUId': 'end-user identity in the channel',
  'history.messages.response.components': 'array of objects',
  'history.messages.response.components.cT': 'component type, e.g. `text`',
  'history.messages.response.components.data': 'object, e.g. with `text`',
  'history.messages.response.lang': 'conversation language',
  'history.messages.response.chnl': "end user's conversation channel",
  'history.messages.response.tags': 'meta tags',
  'history.messages.response.sessionId': 'sessionId, string',
} as const;
