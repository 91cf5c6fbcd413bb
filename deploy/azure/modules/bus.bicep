// Deliveries over Service Bus. The truth stays in PostgreSQL. Gateways and servers never call it.
param name string
param location string
param engineId string
param scalerId string

// Azure Service Bus Data Sender, Data Receiver, and Data Owner: the lengths of queues are read with no less.
var sendRole = '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39'
var receiveRole = '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0'
var ownRole = '090c5cfd-751d-490a-894a-3ce6f1109419'

var queues = [
  'dag-jobs'
  'functionapp-tasks'
  'container-tasks'
  'dag-worker-tasks'
]
var grants = [
  {
    principal: engineId
    role: sendRole
  }
  {
    principal: engineId
    role: receiveRole
  }
  {
    principal: scalerId
    role: ownRole
  }
]

resource namespace 'Microsoft.ServiceBus/namespaces@2021-11-01' = {
  name: '${name}-bus'
  location: location
  sku: {
    name: 'Standard'
    tier: 'Standard'
  }
  properties: {
    disableLocalAuth: true
  }
}

resource busQueues 'Microsoft.ServiceBus/namespaces/queues@2021-11-01' = [for queue in queues: {
  parent: namespace
  name: queue
  properties: {
    lockDuration: 'PT5M'
    defaultMessageTimeToLive: 'P1D'
    maxDeliveryCount: 10
    maxSizeInMegabytes: 1024
    requiresDuplicateDetection: true
    duplicateDetectionHistoryTimeWindow: 'PT10M'
    deadLetteringOnMessageExpiration: true
  }
}]

resource assignments 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for grant in grants: {
  name: guid(namespace.id, grant.principal, grant.role)
  scope: namespace
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', grant.role)
    principalId: grant.principal
    principalType: 'ServicePrincipal'
  }
}]
