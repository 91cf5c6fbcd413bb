// Three accounts, one for each zone. None has a key that works: only identities are let in.
param name string
param location string
param bronzeContainers array
param gatewayId string
param engineId string
param readerId string
param externalId string

// Storage Blob Data Contributor, and Storage Blob Data Reader. Both may issue signatures for what they may read.
var writeRole = 'ba92f5b4-2d11-453d-a403-e96b0029c9fe'
var readRole = '2a2b9908-6ea1-4ae2-8e65-a410df84e7d1'

var containers = {
  bronze: bronzeContainers
  silver: [
    'cogs'
    'vectors'
    'published'
    'intermediates'
    'results'
  ]
  external: [
    'public'
  ]
}
var zones = [
  'bronze'
  'silver'
  'external'
]
var grants = [
  {
    zone: 0
    principal: gatewayId
    role: writeRole
  }
  {
    zone: 1
    principal: gatewayId
    role: readRole
  }
  {
    zone: 0
    principal: engineId
    role: writeRole
  }
  {
    zone: 1
    principal: engineId
    role: writeRole
  }
  {
    zone: 2
    principal: engineId
    role: writeRole
  }
  {
    zone: 1
    principal: readerId
    role: readRole
  }
  {
    zone: 2
    principal: externalId
    role: readRole
  }
]
var places = flatten(map(range(0, 3), zone => map(containers[zones[zone]], container => {
  zone: zone
  container: container
})))

resource accounts 'Microsoft.Storage/storageAccounts@2023-05-01' = [for zone in zones: {
  name: '${name}${zone}'
  location: location
  kind: 'StorageV2'
  sku: {
    name: 'Standard_ZRS'
  }
  properties: {
    accessTier: 'Hot'
    allowBlobPublicAccess: false
    allowSharedKeyAccess: false
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
  }
}]

resource services 'Microsoft.Storage/storageAccounts/blobServices@2023-05-01' = [for (zone, number) in zones: {
  parent: accounts[number]
  name: 'default'
  properties: {
    deleteRetentionPolicy: {
      enabled: true
      days: 14
    }
  }
}]

resource blobContainers 'Microsoft.Storage/storageAccounts/blobServices/containers@2023-05-01' = [for place in places: {
  parent: services[place.zone]
  name: place.container
}]

resource assignments 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for grant in grants: {
  name: guid(resourceGroup().id, name, zones[grant.zone], grant.principal, grant.role)
  scope: accounts[grant.zone]
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', grant.role)
    principalId: grant.principal
    principalType: 'ServicePrincipal'
  }
}]

output bronzeAccount string = accounts[0].name
output silverAccount string = accounts[1].name
output externalAccount string = accounts[2].name
