// geomill on Azure Container Apps. The steps before and after are in docs/how-to/deploy-on-azure.md.
//
// No process has a password or an account key: each has an identity, and each identity has the rights of its process.
targetScope = 'resourceGroup'

@description('Beginning of all names: lower-case letters and digits.')
@minLength(3)
@maxLength(11)
param name string

param location string = resourceGroup().location

@description('Image of geomill, in a registry of this resource group.')
param image string

@description('Name of the registry, without .azurecr.io.')
param registryName string

@description('Object id and name of the group or user that administers the database.')
param administratorId string
param administratorName string

@description('postgres: queues in the database; servicebus: deliveries over Service Bus.')
@allowed([
  'postgres'
  'servicebus'
])
param broker string = 'postgres'

@description('geomill: workers copy public files; data_factory: a pipeline does.')
@allowed([
  'geomill'
  'data_factory'
])
param exporter string = 'geomill'

@description('URL under which people and partners reach the gateway.')
param publicUrl string

@description('URL of the external server.')
param externalUrl string

@description('Containers in bronze that partners write to themselves.')
param bronzeContainers array = []

@description('Platforms. The uploads of each over HTTP are in a container with its name.')
param platforms array = [
  'ddh'
]

@description('Most replicas of the heavy worker. Each has four slots.')
param heavyReplicas int = 10

// Outputs of the identities are in this order.
var processes = [
  'gateway'
  'engine'
  'reader'
  'external'
  'migrate'
  'scaler'
]

module network 'modules/network.bicep' = {
  name: 'network'
  params: {
    name: name
    location: location
  }
}

module identities 'modules/identities.bicep' = {
  name: 'identities'
  params: {
    name: name
    location: location
    processes: processes
    registryName: registryName
  }
}

module storage 'modules/storage.bicep' = {
  name: 'storage'
  params: {
    name: name
    location: location
    bronzeContainers: union(bronzeContainers, platforms)
    gatewayId: identities.outputs.principals[0]
    engineId: identities.outputs.principals[1]
    readerId: identities.outputs.principals[2]
    externalId: identities.outputs.principals[3]
  }
}

module database 'modules/database.bicep' = {
  name: 'database'
  params: {
    name: name
    location: location
    subnetId: network.outputs.databaseSubnetId
    zoneId: network.outputs.databaseZoneId
    administratorId: administratorId
    administratorName: administratorName
  }
}

module bus 'modules/bus.bicep' = if (broker == 'servicebus') {
  name: 'bus'
  params: {
    name: name
    location: location
    engineId: identities.outputs.principals[1]
    scalerId: identities.outputs.principals[5]
  }
}

module secrets 'modules/secrets.bicep' = {
  name: 'secrets'
  params: {
    name: name
    location: location
    readers: [
      identities.outputs.principals[0]
      identities.outputs.principals[1]
      identities.outputs.principals[2]
      identities.outputs.principals[5]
    ]
  }
}

module factory 'modules/factory.bicep' = if (exporter == 'data_factory') {
  name: 'factory'
  params: {
    name: name
    location: location
    silverAccount: storage.outputs.silverAccount
    externalAccount: storage.outputs.externalAccount
    engineId: identities.outputs.principals[1]
  }
}

module apps 'modules/apps.bicep' = {
  name: 'apps'
  params: {
    name: name
    location: location
    image: image
    registryServer: '${registryName}.azurecr.io'
    subnetId: network.outputs.appsSubnetId
    identityIds: {
      gateway: identities.outputs.ids[0]
      engine: identities.outputs.ids[1]
      reader: identities.outputs.ids[2]
      external: identities.outputs.ids[3]
      migrate: identities.outputs.ids[4]
      scaler: identities.outputs.ids[5]
    }
    clientIds: {
      gateway: identities.outputs.clients[0]
      engine: identities.outputs.clients[1]
      reader: identities.outputs.clients[2]
      external: identities.outputs.clients[3]
      migrate: identities.outputs.clients[4]
      scaler: identities.outputs.clients[5]
    }
    databaseHost: database.outputs.host
    bronzeAccount: storage.outputs.bronzeAccount
    silverAccount: storage.outputs.silverAccount
    externalAccount: storage.outputs.externalAccount
    vaultUri: secrets.outputs.uri
    broker: broker
    busNamespace: '${name}-bus'
    exporter: exporter
    factoryId: resourceId('Microsoft.DataFactory/factories', '${name}-factory')
    publicUrl: publicUrl
    externalUrl: externalUrl
    heavyReplicas: heavyReplicas
  }
}

output gatewayHost string = apps.outputs.gatewayHost
output externalHost string = apps.outputs.externalHost
output databaseHost string = database.outputs.host
output identityNames array = identities.outputs.names
